// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/read_file.h"

#include <fmt/core.h>

#include <array>
#include <fstream>

#include "base/bytes.h"

namespace sealane::cli {
namespace {

constexpr size_t kFileBytesMax = 64_MiB;

}  // namespace

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return usage_error(path + ": cannot be read");
  std::string text;
  std::array<char, 64_KiB> piece;
  while (text.size() <= kFileBytesMax &&
         (file.read(piece.data(), piece.size()), file.gcount() > 0)) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return usage_error(path + ": cannot be read");
  if (text.size() > kFileBytesMax) {
    return usage_error(fmt::format("{}: larger than 64 MiB: no result is", path));
  }
  return text;
}

}  // namespace sealane::cli
