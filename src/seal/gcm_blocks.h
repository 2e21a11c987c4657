// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For gcm_loop.h: single blocks, and what the parts of the loop know of a width's vector type V. As
// all of the loop it is compiled once per width, for the instructions that SEALANE_GCM_TARGET
// names.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "base/registers.h"
#include "seal/gcm_width.h"

#define SEALANE_WIDE [[gnu::target(SEALANE_GCM_TARGET)]]
#define SEALANE_WIDE_INLINE [[gnu::target(SEALANE_GCM_TARGET), gnu::always_inline]] inline

namespace sealane {

// What is made once for all widths is made for the longest stride of the widest vectors.
constexpr size_t kGcmVectorBytesMax = 64;
constexpr size_t kGcmStrideBytesMax = 512;
constexpr size_t kGcmTableBlocks = 256;  // see gcm_keystream.h: and a stride that runs over its end
constexpr size_t kGcmTableBytes = (2 + kGcmTableBlocks) * kGcmBlockBytes + kGcmStrideBytesMax;

namespace {

SEALANE_WIDE_INLINE __m128i block_at(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
SEALANE_WIDE_INLINE void store_block(void* to, __m128i block) {
  _mm_storeu_si128(static_cast<__m128i*>(to), block);
}
// Up to a block of them, then zeros. Every byte of it comes from one read, and none is read that is
// not there.
SEALANE_WIDE_INLINE __m128i block_of_few(const uint8_t* from, size_t bytes) {
  if (bytes >= sizeof(__m128i)) return block_at(from);
  uint64_t low = 0;
  uint64_t high = 0;
  if (bytes >= 8) {
    std::memcpy(&low, from, 8);
    if (bytes > 8) {
      std::memcpy(&high, from + bytes - 8, 8);
      high >>= 8 * (16 - bytes);
    }
  } else if (bytes >= 4) {
    uint32_t first = 0;
    uint32_t last = 0;
    std::memcpy(&first, from, 4);
    std::memcpy(&last, from + bytes - 4, 4);
    low = uint64_t{last} << 8 * (bytes - 4) | first;
  } else if (bytes > 0) {
    low = from[0] | uint64_t{from[bytes / 2]} << 8 * (bytes / 2) |
          uint64_t{from[bytes - 1]} << 8 * (bytes - 1);
  }
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
// All ones in the first bytes of a block, zeros in the others.
SEALANE_WIDE_INLINE __m128i first_bytes(size_t bytes) {
  const __m128i numbers = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm_cmplt_epi8(numbers, _mm_set1_epi8(static_cast<char>(bytes < 16 ? bytes : 16)));
}
// The other way: no byte is written twice, and none that is not there.
SEALANE_WIDE_INLINE void store_few(uint8_t* to, __m128i block, size_t bytes) {
  if (bytes >= sizeof block) return store_block(to, block);
  auto left = static_cast<uint64_t>(_mm_extract_epi64(block, 0));
  if ((bytes & 8) != 0) {
    std::memcpy(to, &left, 8);
    to += 8;
    left = static_cast<uint64_t>(_mm_extract_epi64(block, 1));
  }
  for (size_t count = 4; count != 0; count /= 2) {
    if ((bytes & count) == 0) continue;
    for (size_t i = 0; i < count; ++i, left >>= 8) *to++ = static_cast<uint8_t>(left);
  }
}
SEALANE_WIDE_INLINE __m128i reversal() {
  return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// x^128 + x^127 + x^126 + x^121 + 1
SEALANE_WIDE_INLINE __m128i polynomial() {
  return _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1);
}
// By way of general registers: GCC would put a hash that comes in such on the stack.
SEALANE_WIDE_INLINE __m128i element(const GcmHash& hash) {
  uint64_t high = hash.high;
  uint64_t low = hash.low;
  asm("" : "+r"(high), "+r"(low));
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
// In general registers from here on: vector registers may be cleared next.
SEALANE_WIDE_INLINE GcmHash hash_of(__m128i element) {
  auto high = static_cast<uint64_t>(_mm_extract_epi64(element, 1));
  auto low = static_cast<uint64_t>(_mm_extract_epi64(element, 0));
  asm volatile("" : "+r"(high), "+r"(low));
  return {high, low};
}

// IV and counter, put together in registers: stored in pieces they could not be loaded at once.
SEALANE_WIDE_INLINE __m128i counter_block(const Iv& iv, uint32_t counter) {
  uint64_t first = 0;
  uint32_t last = 0;
  std::memcpy(&first, iv.data(), sizeof first);
  std::memcpy(&last, iv.data() + sizeof first, sizeof last);
  return _mm_set_epi64x(static_cast<long long>(uint64_t{__builtin_bswap32(counter)} << 32 | last),
                        static_cast<long long>(first));
}

// A stride is what the loop does at a time.
template <typename V>
struct GcmShape {
  static constexpr size_t kVectors = V::kVectors;
  static constexpr size_t kLanes = V::kBytes / kGcmBlockBytes;
  static constexpr size_t kBlocks = kVectors * kLanes;
  static constexpr size_t kStride = kVectors * V::kBytes;
  static_assert(V::kBytes <= kGcmVectorBytesMax && kStride <= kGcmStrideBytesMax);
  static constexpr size_t kCachedRounds = 2;  // see gcm_keystream.h
  // The AES instructions of a stride. Behind each there is room for a step of something else.
  static constexpr size_t kSlots = kVectors * (GcmKey::kRounds - kCachedRounds);
};

}  // namespace
}  // namespace sealane
