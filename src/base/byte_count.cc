// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/byte_count.h"

#include <charconv>

#include "base/bytes.h"
#include "base/text.h"

namespace sealane {
namespace {

// 0 if there is no such unit.
uint64_t unit_bytes(std::string_view unit) {
  if (unit.empty()) return 1;
  if (unit == "K" || unit == "k") return 1_KiB;
  if (unit == "M" || unit == "m") return 1_MiB;
  if (unit == "G" || unit == "g") return 1_GiB;
  return 0;
}

}  // namespace

Result<uint64_t> parse_byte_count(std::string_view text, uint64_t limit) {
  uint64_t amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const auto digits = static_cast<size_t>(end - text.data());
  const uint64_t unit = digits == 0 ? 0 : unit_bytes(text.substr(digits));
  if (unit == 0) {
    return usage_error(concat("'", text, "' is not a number of bytes like 4096, 64K or 1M"));
  }
  if (error != std::errc() || amount == 0 || amount > limit / unit) {
    return usage_error(concat("'", text, "' is not between 1 byte and ", format_byte_count(limit)));
  }
  return amount * unit;
}

std::string format_byte_count(uint64_t bytes) {
  if (bytes >= 1_GiB && bytes % 1_GiB == 0) return concat(bytes / 1_GiB, " GiB");
  if (bytes >= 1_MiB && bytes % 1_MiB == 0) return concat(bytes / 1_MiB, " MiB");
  if (bytes >= 1_KiB && bytes % 1_KiB == 0) return concat(bytes / 1_KiB, " KiB");
  return concat(bytes, " B");
}

}  // namespace sealane
