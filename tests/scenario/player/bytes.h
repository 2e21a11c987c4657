// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes nobody can guess, and how they are compared. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sealane::test {

inline uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  return x;
}

inline void scramble(uint8_t* to, uint64_t bytes, uint64_t seed) {
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = mixed(seed + at);
    std::memcpy(to + at, &word, std::min<uint64_t>(8, bytes - at));
  }
}

// Four sums side by side, because each has to wait for its own multiplication.
inline uint64_t digest(const uint8_t* from, uint64_t bytes) {
  uint64_t sums[4] = {bytes, 1, 2, 3};
  for (uint64_t at = 0; at < bytes; at += 32) {
    uint64_t words[4] = {};
    std::memcpy(words, from + at, std::min<uint64_t>(32, bytes - at));
    for (int i = 0; i < 4; ++i) sums[i] = mixed(sums[i] + words[i]);
  }
  return mixed(mixed(mixed(sums[0] + sums[1]) + sums[2]) + sums[3]);
}

}  // namespace sealane::test
