// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/number.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

namespace sealane::cli {

std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most) {
  return [least, most](const std::string& text) -> std::string {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return {};
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
}

std::function<std::string(const std::string&)> real_number(double least, double most) {
  return [least, most](const std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool whole = read.ec == std::errc() && read.ptr == end;
    if (whole && std::isfinite(value) && value >= least && value <= most) return {};
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
}

}  // namespace sealane::cli
