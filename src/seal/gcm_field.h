// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic in GCM's field, GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, with carry-less
// multiplication. x86-64 with PCLMULQDQ; the caller has checked for it. Constant time: operands are
// secrets.
#pragma once

#include <immintrin.h>

#include "seal/gcm_width.h"

namespace sealane::gcm_field {

inline GcmHash load(const uint8_t* from) {
  uint64_t high = 0;
  uint64_t low = 0;
  std::memcpy(&high, from, 8);
  std::memcpy(&low, from + 8, 8);
  return {__builtin_bswap64(high), __builtin_bswap64(low)};
}

inline GcmBlock store(const GcmHash& value) {
  const uint64_t words[2] = {__builtin_bswap64(value.high), __builtin_bswap64(value.low)};
  GcmBlock out;
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

inline GcmHash add(const GcmHash& a, const GcmHash& b) { return {a.high ^ b.high, a.low ^ b.low}; }

// Bits are stored in reverse, so the carry-less product of two elements is that of the reversed
// polynomials, one place too low: shift it up, then take out the low half from below, 64 bits at a
// time, with the reversed polynomial.
__attribute__((target("pclmul,sse4.1"))) inline GcmHash multiply(const GcmHash& a,
                                                                 const GcmHash& b) {
  const auto word = [](uint64_t value) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_set_epi64x(0, static_cast<long long>(value));
  };
  struct Product {
    uint64_t high, low;
  };
  const auto times = [&](uint64_t x, uint64_t y) __attribute__((target("pclmul,sse4.1"))) {
    const __m128i p = _mm_clmulepi64_si128(word(x), word(y), 0);
    return Product{static_cast<uint64_t>(_mm_extract_epi64(p, 1)),
                   static_cast<uint64_t>(_mm_extract_epi64(p, 0))};
  };
  const Product high = times(a.high, b.high);
  const Product low = times(a.low, b.low);
  const Product middle = times(a.high ^ a.low, b.high ^ b.low);
  uint64_t w[4] = {low.low, low.high ^ middle.low ^ high.low ^ low.low,
                   high.low ^ middle.high ^ high.high ^ low.high, high.high};
  w[3] = w[3] << 1 | w[2] >> 63;
  w[2] = w[2] << 1 | w[1] >> 63;
  w[1] = w[1] << 1 | w[0] >> 63;
  w[0] = w[0] << 1;
  constexpr uint64_t kPolynomial = 0xC200000000000000;  // x^128 + x^127 + x^126 + x^121 + 1
  for (int i = 0; i < 2; ++i) {
    const Product fold = times(w[i], kPolynomial);
    w[i + 1] ^= fold.low;
    w[i + 2] ^= fold.high ^ w[i];
  }
  return {w[3], w[2]};
}

}  // namespace sealane::gcm_field
