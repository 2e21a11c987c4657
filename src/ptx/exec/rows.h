// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole row: what all 32 lanes of a warp load or store, one lane's vector behind the other's in
// memory, and a register for each part of it. Sixteen bytes at a time, parted and joined by
// shuffles: a loop over lanes is not vectorised by the compilers and takes most of a copy's time.
//
// Pure functions of their arguments. Memory may change meanwhile (access.h).
#pragma once

#include <cstdint>
#include <cstring>

#include "ptx/exec/access.h"

namespace sealane::ptx {

typedef uint32_t Words __attribute__((vector_size(16)));
typedef uint64_t Longs __attribute__((vector_size(16)));

template <typename V>
SEALANE_UNWATCHED inline V read_vector(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <typename V>
SEALANE_UNWATCHED inline void write_vector(void* to, V v) {
  std::memcpy(to, &v, sizeof v);
}

template <typename T>
SEALANE_UNWATCHED void move_row(void* to, const void* from) {
  auto* d = static_cast<uint8_t*>(to);
  const auto* a = static_cast<const uint8_t*>(from);
  for (size_t at = 0; at < sizeof(T) * kLanes; at += sizeof(Longs)) {
    write_vector(d + at, read_vector<Longs>(a + at));
  }
}

// Four lanes' vectors of four words become four lanes of four registers, and back.
inline void transpose(Words* v) {
  const Words low01 = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
  const Words low23 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Words high01 = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Words high23 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

SEALANE_UNWATCHED inline void split_row(uint32_t* const (&d)[4], const uint8_t* memory) {
  for (unsigned lane = 0; lane < kLanes; lane += 4, memory += 64) {
    Words v[4];
    for (unsigned k = 0; k < 4; ++k) v[k] = read_vector<Words>(memory + k * 16);
    transpose(v);
    for (unsigned k = 0; k < 4; ++k) write_vector(d[k] + lane, v[k]);
  }
}

SEALANE_UNWATCHED inline void join_row(uint8_t* memory, const uint32_t* const (&a)[4]) {
  for (unsigned lane = 0; lane < kLanes; lane += 4, memory += 64) {
    Words v[4];
    for (unsigned k = 0; k < 4; ++k) v[k] = read_vector<Words>(a[k] + lane);
    transpose(v);
    for (unsigned k = 0; k < 4; ++k) write_vector(memory + k * 16, v[k]);
  }
}

SEALANE_UNWATCHED inline void split_row(uint32_t* const (&d)[2], const uint8_t* memory) {
  for (unsigned lane = 0; lane < kLanes; lane += 4, memory += 32) {
    const auto low = read_vector<Words>(memory);
    const auto high = read_vector<Words>(memory + 16);
    write_vector<Words>(d[0] + lane, __builtin_shufflevector(low, high, 0, 2, 4, 6));
    write_vector<Words>(d[1] + lane, __builtin_shufflevector(low, high, 1, 3, 5, 7));
  }
}

SEALANE_UNWATCHED inline void join_row(uint8_t* memory, const uint32_t* const (&a)[2]) {
  for (unsigned lane = 0; lane < kLanes; lane += 4, memory += 32) {
    const auto even = read_vector<Words>(a[0] + lane);
    const auto odd = read_vector<Words>(a[1] + lane);
    write_vector<Words>(memory, __builtin_shufflevector(even, odd, 0, 4, 1, 5));
    write_vector<Words>(memory + 16, __builtin_shufflevector(even, odd, 2, 6, 3, 7));
  }
}

SEALANE_UNWATCHED inline void split_row(uint64_t* const (&d)[2], const uint8_t* memory) {
  for (unsigned lane = 0; lane < kLanes; lane += 2, memory += 32) {
    const auto low = read_vector<Longs>(memory);
    const auto high = read_vector<Longs>(memory + 16);
    write_vector<Longs>(d[0] + lane, __builtin_shufflevector(low, high, 0, 2));
    write_vector<Longs>(d[1] + lane, __builtin_shufflevector(low, high, 1, 3));
  }
}

SEALANE_UNWATCHED inline void join_row(uint8_t* memory, const uint64_t* const (&a)[2]) {
  for (unsigned lane = 0; lane < kLanes; lane += 2, memory += 32) {
    const auto even = read_vector<Longs>(a[0] + lane);
    const auto odd = read_vector<Longs>(a[1] + lane);
    write_vector<Longs>(memory, __builtin_shufflevector(even, odd, 0, 2));
    write_vector<Longs>(memory + 16, __builtin_shufflevector(even, odd, 1, 3));
  }
}

}  // namespace sealane::ptx
