// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes to copy: every position has its own value for a given seed, so that a shifted, torn or
// stale copy is seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sealane::test {

using ByteVector = std::vector<unsigned char>;

inline ByteVector make_bytes(size_t count, uint32_t seed) {
  ByteVector bytes(count);
  uint64_t state = seed * uint64_t{0x9e3779b97f4a7c15} + 1;
  for (size_t at = 0; at < count; at += sizeof state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t word = state ^ state >> 29;  // the low bits alone would repeat soon
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, count - at));
  }
  return bytes;
}

// Below, at and above the limits a driver may have: words, pages, messages of 1 MiB.
inline const std::vector<size_t> kCopySizes = {1,    3,     4,       63,      4096,
                                               4097, 65536, 1000003, 1 << 20, (3 << 20) + 13};

}  // namespace sealane::test
