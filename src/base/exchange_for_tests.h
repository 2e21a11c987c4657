// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can the file system of a directory exchange two names? Some cannot (NFS): there the stream that
// began last keeps the name (output_file.h), and tests of anything else have nothing to see.
#pragma once

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace sealane::test {

inline bool can_exchange_names(const std::filesystem::path& directory) {
  const auto one = directory / "exchange-1";
  const auto other = directory / "exchange-2";
  std::ofstream(one).close();
  std::ofstream(other).close();
  const bool cannot =
      ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0 &&
      (errno == EINVAL || errno == ENOSYS);
  std::filesystem::remove(one);
  std::filesystem::remove(other);
  return !cannot;
}

}  // namespace sealane::test
