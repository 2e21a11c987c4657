// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes to copy: every position has its own value for a given seed, so that a shifted, torn or
// stale copy is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sealane::test {

using ByteVector = std::vector<unsigned char>;

inline ByteVector make_bytes(size_t count, uint32_t seed) {
  ByteVector bytes(count);
  uint32_t state = seed * 2654435761u + 1;
  for (unsigned char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return bytes;
}

// Below, at and above the limits a driver may have: words, pages, messages of 1 MiB.
inline const std::vector<size_t> kCopySizes = {1,    3,     4,       63,      4096,
                                               4097, 65536, 1000003, 1 << 20, (3 << 20) + 13};

}  // namespace sealane::test
