// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop on vectors of two blocks: VAES and VPCLMULQDQ on 256 bits, without AVX512.

#define SEALANE_GCM_TARGET "prfchw,avx2,aes,pclmul,vaes,vpclmulqdq"
#include "seal/gcm_loop.h"

namespace sealane {
namespace {

struct Ymm {
  using Type = __m256i;
  using Short = Ymm;
  static constexpr size_t kBytes = 32;
  static constexpr size_t kVectors = 8;
  static constexpr uint64_t kStreamedBytesMin = 256_KiB;
  static constexpr uint64_t kTableBytesMin = 8_KiB;  // of a part: below, a table does not pay
  static constexpr bool kAddsThree = false;

  SEALANE_WIDE_INLINE static Type load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  SEALANE_WIDE_INLINE static Type load_few(const uint8_t* from, size_t bytes) {
    if (bytes <= 16) return first_lane(block_of_few(from, bytes));
    return _mm256_set_m128i(block_of_few(from + 16, bytes - 16), block_at(from));
  }
  SEALANE_WIDE_INLINE static Type only(Type value, size_t bytes) {
    const __m128i second = bytes > 16 ? first_bytes(bytes - 16) : _mm_setzero_si128();
    return _mm256_and_si256(value, _mm256_set_m128i(second, first_bytes(bytes)));
  }
  SEALANE_WIDE_INLINE static void store(void* to, Type value) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), value);
  }
  SEALANE_WIDE_INLINE static void store_few(uint8_t* to, Type value, size_t bytes) {
    sealane::store_few(to, lane(value), bytes);
    if (bytes > 16) sealane::store_few(to + 16, _mm256_extracti128_si256(value, 1), bytes - 16);
  }
  SEALANE_WIDE_INLINE static void put(void* to, Type value, bool streamed) {
    streamed ? _mm256_stream_si256(static_cast<__m256i*>(to), value) : store(to, value);
  }
  SEALANE_WIDE_INLINE static Type zero() { return _mm256_setzero_si256(); }
  SEALANE_WIDE_INLINE static Type broadcast(__m128i block) {
    return _mm256_broadcastsi128_si256(block);
  }
  SEALANE_WIDE_INLINE static Type first_lane(__m128i block) {
    return _mm256_zextsi128_si256(block);
  }
  SEALANE_WIDE_INLINE static __m128i lane(Type value) { return _mm256_castsi256_si128(value); }
  SEALANE_WIDE_INLINE static Type sum_of_lanes(Type value) {
    return first_lane(_mm_xor_si128(lane(value), _mm256_extracti128_si256(value, 1)));
  }
  SEALANE_WIDE_INLINE static Type lane_numbers() {
    return _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0);
  }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b) { return _mm256_xor_si256(a, b); }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b, Type c) { return add(add(a, b), c); }
  SEALANE_WIDE_INLINE static Type add_words(Type a, Type b) { return _mm256_add_epi32(a, b); }
  SEALANE_WIDE_INLINE static Type add_floats(Type a, Type b) {
    return _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
  }
  SEALANE_WIDE_INLINE static Type shuffle(Type a, Type by) { return _mm256_shuffle_epi8(a, by); }
  SEALANE_WIDE_INLINE static Type swap(Type a) { return _mm256_shuffle_epi32(a, 0x4e); }
  SEALANE_WIDE_INLINE static Type shift_up(Type a) { return _mm256_slli_si256(a, 8); }
  SEALANE_WIDE_INLINE static Type shift_down(Type a) { return _mm256_srli_si256(a, 8); }
  SEALANE_WIDE_INLINE static Type round(Type a, Type key) { return _mm256_aesenc_epi128(a, key); }
  SEALANE_WIDE_INLINE static Type last_round(Type a, Type key) {
    return _mm256_aesenclast_epi128(a, key);
  }
  template <int halves>
  SEALANE_WIDE_INLINE static Type multiply(Type a, Type b) {
    return _mm256_clmulepi64_epi128(a, b, halves);
  }
  SEALANE_WIDE_INLINE static void keep(Type& value) { asm("" : "+x"(value)); }
  SEALANE_WIDE_INLINE static void clear_registers() { clear_avx_registers(); }
};

}  // namespace

const GcmWidth kVaes256Width = kWidthOf<Ymm>;

}  // namespace sealane
