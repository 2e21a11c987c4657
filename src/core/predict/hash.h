// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Spreads the bits of a number over a table. Same on every machine; not for secrets.
#pragma once

#include <cstdint>

namespace sealane {

// A bijection of 64 bits: xor-shifts and odd multipliers.
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

}  // namespace sealane
