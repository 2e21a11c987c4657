// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes as people write them in test vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace sealane {

inline uint8_t hex_digit(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const size_t value = digits.find(c);
  SEALANE_CHECK(value != std::string_view::npos, "not a hex digit");
  return static_cast<uint8_t>(value);
}

inline std::vector<uint8_t> from_hex(std::string_view text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(hex_digit(text[i]) << 4 | hex_digit(text[i + 1])));
  }
  return bytes;
}

template <size_t N>
std::array<uint8_t, N> array_from_hex(std::string_view text) {
  const auto bytes = from_hex(text);
  SEALANE_CHECK(bytes.size() == N, "hex text has another length");
  std::array<uint8_t, N> out;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace sealane
