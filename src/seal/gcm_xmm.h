// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One block, for gcm_loop.h. Apart from gcm_aes_ni.cc because a test builds wider vectors of it.
#pragma once

#include <immintrin.h>

#include "seal/gcm_loop.h"

namespace sealane {
namespace {

struct Xmm {
  using Type = __m128i;
  using Short = Xmm;
  static constexpr size_t kBytes = 16;
  static constexpr size_t kVectors = 8;
  static constexpr uint64_t kStreamedBytesMin =
      kGcmMessageBytesMax;                           // AES, not memory, is the limit
  static constexpr uint64_t kTableBytesMin = 8_KiB;  // of a part: below, a table does not pay
  static constexpr bool kAddsThree = false;

  SEALANE_WIDE_INLINE static Type load(const void* from) { return block_at(from); }
  SEALANE_WIDE_INLINE static Type load_few(const uint8_t* from, size_t bytes) {
    return block_of_few(from, bytes);
  }
  SEALANE_WIDE_INLINE static Type only(Type value, size_t bytes) {
    return _mm_and_si128(value, first_bytes(bytes));
  }
  SEALANE_WIDE_INLINE static void store(void* to, Type value) { store_block(to, value); }
  SEALANE_WIDE_INLINE static void store_few(uint8_t* to, Type value, size_t bytes) {
    sealane::store_few(to, value, bytes);
  }
  SEALANE_WIDE_INLINE static void put(void* to, Type value, bool streamed) {
    streamed ? _mm_stream_si128(static_cast<__m128i*>(to), value) : store_block(to, value);
  }
  SEALANE_WIDE_INLINE static Type zero() { return _mm_setzero_si128(); }
  SEALANE_WIDE_INLINE static Type broadcast(__m128i block) { return block; }
  SEALANE_WIDE_INLINE static Type first_lane(__m128i block) { return block; }
  SEALANE_WIDE_INLINE static __m128i lane(Type value) { return value; }
  SEALANE_WIDE_INLINE static Type sum_of_lanes(Type value) { return value; }
  SEALANE_WIDE_INLINE static Type lane_numbers() { return _mm_setzero_si128(); }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b) { return _mm_xor_si128(a, b); }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b, Type c) { return add(add(a, b), c); }
  SEALANE_WIDE_INLINE static Type add_words(Type a, Type b) { return _mm_add_epi32(a, b); }
  SEALANE_WIDE_INLINE static Type add_floats(Type a, Type b) {
    return _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)));
  }
  SEALANE_WIDE_INLINE static Type shuffle(Type a, Type by) { return _mm_shuffle_epi8(a, by); }
  SEALANE_WIDE_INLINE static Type swap(Type a) { return _mm_shuffle_epi32(a, 0x4e); }
  SEALANE_WIDE_INLINE static Type shift_up(Type a) { return _mm_slli_si128(a, 8); }
  SEALANE_WIDE_INLINE static Type shift_down(Type a) { return _mm_srli_si128(a, 8); }
  SEALANE_WIDE_INLINE static Type round(Type a, Type key) { return _mm_aesenc_si128(a, key); }
  SEALANE_WIDE_INLINE static Type last_round(Type a, Type key) {
    return _mm_aesenclast_si128(a, key);
  }
  template <int halves>
  SEALANE_WIDE_INLINE static Type multiply(Type a, Type b) {
    return _mm_clmulepi64_si128(a, b, halves);
  }
  SEALANE_WIDE_INLINE static void keep(Type& value) { asm("" : "+x"(value)); }
  SEALANE_WIDE_INLINE static void clear_registers() { clear_avx_registers(); }
};

}  // namespace
}  // namespace sealane
