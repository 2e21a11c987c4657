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

// Eight sums side by side, because each has to wait for its own multiplication; by an odd number,
// so that no step of a sum forgets anything. Every byte of every copy goes through this twice.
inline uint64_t digest(const uint8_t* from, uint64_t bytes) {
  constexpr uint64_t kSums = 8;
  uint64_t sums[kSums] = {bytes, 1, 2, 3, 4, 5, 6, 7};
  uint64_t words[kSums];
  const auto add_words = [&] {
    for (uint64_t i = 0; i < kSums; ++i) sums[i] = (sums[i] + words[i]) * 0x9e3779b97f4a7c15;
  };
  uint64_t at = 0;
  for (; at + sizeof words <= bytes; at += sizeof words) {
    std::memcpy(words, from + at, sizeof words);
    add_words();
  }
  std::memset(words, 0, sizeof words);
  std::memcpy(words, from + at, bytes - at);
  add_words();
  uint64_t digest = 0;
  for (const uint64_t sum : sums) digest = mixed(digest + sum);
  return digest;
}

}  // namespace sealane::test
