// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A few small files as one, in the format that tar(1) reads (POSIX ustar). The same files give the
// same bytes: no owner, no time. Pure.
#pragma once

#include <string>
#include <vector>

namespace sealane::cli {

struct TarMember {
  std::string name;  // at most 100 bytes
  std::string content;
  std::string what{};  // for people; not in the file
};

std::string tar_of(const std::vector<TarMember>& members);

}  // namespace sealane::cli
