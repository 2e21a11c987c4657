// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Small floating-point formats: values in and out of half, bfloat16, tf32 and the two fp8 formats.
// Everything rounds once: what comes from a double goes through a float rounded to odd.
//
// Stateless. Written without a branch per format where lanes are to be vectorised.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace sealane::ptx {

inline float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t rest = h & 0x7fff;
  // Subnormals become normal by a multiplication that is exact.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  const uint32_t finite = std::bit_cast<uint32_t>(scaled);
  const uint32_t special = 0x7f800000 | rest << 13;
  return std::bit_cast<float>(sign | (rest >= 0x7c00 ? special : finite));
}

// Round to nearest even.
inline uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  // Small values: an addition that puts the last bit where half's is.
  const float magic = std::bit_cast<float>(uint32_t{126} << 23);
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + magic) - std::bit_cast<uint32_t>(magic);
  const uint32_t odd = rest >> 13 & 1;
  const uint32_t normal = (rest + 0xfff + odd - (112u << 23)) >> 13;
  uint32_t out = rest < (113u << 23) ? small : normal;
  out = rest >= 0x477ff000 ? 0x7c00 : out;
  out = rest > 0x7f800000 ? 0x7fff : out;
  return static_cast<uint16_t>(sign | out);
}

inline uint16_t float_to_half_toward_zero(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest == 0x7f800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (rest >= 0x47800000) return static_cast<uint16_t>(sign | 0x7bff);
  if (rest >= 113u << 23) return static_cast<uint16_t>(sign | (rest - (112u << 23)) >> 13);
  return static_cast<uint16_t>(
      sign | static_cast<uint32_t>(std::fabs(f) * 0x1p24f));  // in units of the smallest half
}

inline float bf16_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}
inline uint16_t float_to_bf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
inline uint16_t float_to_bf16_toward_zero(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : bits >> 16);
}

// A float that rounds to a smaller format as the double would.
inline float double_to_odd_float(double d) {
  const float f = static_cast<float>(d);
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (static_cast<double>(f) == d || d != d || std::isinf(f)) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(d)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// Round to nearest, ties away from zero, to ten bits of mantissa.
inline uint32_t float_to_tf32_away(uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000) return bits;
  return (bits + 0x1000) & 0xffffe000;
}
inline uint32_t float_to_tf32_even(uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000) return bits;
  return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

// fp8 with saturation to the largest finite value. E4M3 has no infinity.
inline uint8_t float_to_fp8(float f, int mantissa, int bias, float largest, uint8_t nan) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  if (f != f) return nan;
  const float size = std::min(std::fabs(f), largest);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int smallest = 1 - bias - mantissa;  // exponent of the last bit of a subnormal
  const int unit = std::max(exponent - 1 - mantissa, smallest);
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  if (unit > smallest) steps += static_cast<uint32_t>(unit - smallest) << mantissa;
  return static_cast<uint8_t>(sign | steps);
}
inline uint8_t float_to_e4m3(float f) { return float_to_fp8(f, 3, 7, 448, 0x7f); }
inline uint8_t float_to_e5m2(float f) { return float_to_fp8(f, 2, 15, 57344, 0x7f); }
inline float e5m2_to_float(uint8_t v) { return half_to_float(static_cast<uint16_t>(v << 8)); }
inline float e4m3_to_float(uint8_t v) {
  if ((v & 0x7f) == 0x7f) return std::bit_cast<float>(0x7fffffffu);
  const int exponent = v >> 3 & 15;
  const auto mantissa = static_cast<float>(v & 7);
  const float size = exponent == 0 ? mantissa * 0x1p-9f : std::ldexp(8 + mantissa, exponent - 10);
  return (v & 0x80) != 0 ? -size : size;
}

}  // namespace sealane::ptx
