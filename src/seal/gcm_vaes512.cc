// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop on vectors of four blocks: VAES and VPCLMULQDQ on AVX512's registers.

#define SEALANE_GCM_TARGET \
  "prfchw,avx512f,avx512bw,avx512dq,avx512vl,avx2,aes,pclmul,vaes,vpclmulqdq"
#include "seal/gcm_loop.h"

// GCC 12's intrinsics name an undefined vector where a result has no lanes to keep.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace sealane {
namespace {

template <size_t vectors>
struct Zmm {
  using Type = __m512i;
  using Short = Zmm<4>;
  static constexpr size_t kBytes = 64;
  static constexpr size_t kVectors = vectors;
  static constexpr uint64_t kStreamedBytesMin = 256_KiB;
  static constexpr uint64_t kTableBytesMin = 16_KiB;  // of a part: below, a table does not pay
  static constexpr bool kAddsThree = true;

  SEALANE_WIDE_INLINE static Type load(const void* from) { return _mm512_loadu_si512(from); }
  SEALANE_WIDE_INLINE static __mmask64 few(size_t bytes) {
    return _cvtu64_mask64((uint64_t{1} << bytes) - 1);
  }
  SEALANE_WIDE_INLINE static Type load_few(const uint8_t* from, size_t bytes) {
    return _mm512_maskz_loadu_epi8(few(bytes), from);
  }
  SEALANE_WIDE_INLINE static Type only(Type value, size_t bytes) {
    return _mm512_maskz_mov_epi8(few(bytes), value);
  }
  SEALANE_WIDE_INLINE static void store(void* to, Type value) { _mm512_storeu_si512(to, value); }
  SEALANE_WIDE_INLINE static void store_few(uint8_t* to, Type value, size_t bytes) {
    _mm512_mask_storeu_epi8(to, few(bytes), value);
  }
  SEALANE_WIDE_INLINE static void put(void* to, Type value, bool streamed) {
    streamed ? _mm512_stream_si512(static_cast<__m512i*>(to), value) : store(to, value);
  }
  SEALANE_WIDE_INLINE static Type zero() { return _mm512_setzero_si512(); }
  SEALANE_WIDE_INLINE static Type broadcast(__m128i block) { return _mm512_broadcast_i32x4(block); }
  SEALANE_WIDE_INLINE static Type first_lane(__m128i block) {
    return _mm512_zextsi128_si512(block);
  }
  SEALANE_WIDE_INLINE static __m128i lane(Type value) { return _mm512_castsi512_si128(value); }
  SEALANE_WIDE_INLINE static Type sum_of_lanes(Type value) {
    const __m256i two =
        _mm256_xor_si256(_mm512_castsi512_si256(value), _mm512_extracti64x4_epi64(value, 1));
    return first_lane(_mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)));
  }
  SEALANE_WIDE_INLINE static Type lane_numbers() {
    return _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
  }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b) { return _mm512_xor_si512(a, b); }
  SEALANE_WIDE_INLINE static Type add(Type a, Type b, Type c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }
  SEALANE_WIDE_INLINE static Type add_words(Type a, Type b) { return _mm512_add_epi32(a, b); }
  SEALANE_WIDE_INLINE static Type add_floats(Type a, Type b) {
    return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
  }
  SEALANE_WIDE_INLINE static Type shuffle(Type a, Type by) { return _mm512_shuffle_epi8(a, by); }
  SEALANE_WIDE_INLINE static Type swap(Type a) { return _mm512_shuffle_epi32(a, _MM_PERM_BADC); }
  SEALANE_WIDE_INLINE static Type shift_up(Type a) { return _mm512_bslli_epi128(a, 8); }
  SEALANE_WIDE_INLINE static Type shift_down(Type a) { return _mm512_bsrli_epi128(a, 8); }
  SEALANE_WIDE_INLINE static Type round(Type a, Type key) { return _mm512_aesenc_epi128(a, key); }
  SEALANE_WIDE_INLINE static Type last_round(Type a, Type key) {
    return _mm512_aesenclast_epi128(a, key);
  }
  template <int halves>
  SEALANE_WIDE_INLINE static Type multiply(Type a, Type b) {
    return _mm512_clmulepi64_epi128(a, b, halves);
  }
  SEALANE_WIDE_INLINE static void keep(Type& value) { asm("" : "+v"(value)); }
  SEALANE_WIDE_INLINE static void clear_registers() { clear_avx512_registers(); }
};

}  // namespace

const GcmWidth kVaes512Width = kWidthOf<Zmm<8>>;

}  // namespace sealane
