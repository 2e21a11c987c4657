// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/toml_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "base/try.h"

namespace sealane {
namespace {

// The parser bounds lists in lists (256), but not the parts of a key. Each takes a dot, which texts
// have, too; together that is as deep as a small stack has room for.
constexpr std::ptrdiff_t kDotsMax = 32;

Status check_dots(std::string_view text, std::string_view file) {
  for (size_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const size_t begin = one.find_first_not_of(" \t");
    const bool comment = begin != std::string_view::npos && one[begin] == '#';
    if (comment || std::count(one.begin(), one.end(), '.') <= kDotsMax) continue;
    return usage_error(fmt::format("{}:{}: more than {} dots in a line", file, line, kDotsMax));
  }
  return {};
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view file) {
  SEALANE_TRY(check_dots(text, file));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    return usage_error(fmt::format("{}:{}: {}", file, error.source().begin.line, what));
  }
}

Result<std::string> read_toml(const std::string& path, std::string_view kind) {
  constexpr std::streamsize kFileBytesMax = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  if (!file || !file.read(text.data(), kFileBytesMax + 1).eof()) {
    if (file) return usage_error(fmt::format("{}: too large for {}", path, kind));
    return usage_error(fmt::format("{}: cannot be read; is it {}?", path, kind));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace sealane
