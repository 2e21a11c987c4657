// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of reduce.h, a vector at a time: one body per (format, operator), written with the
// compilers' portable vector types, to be inlined into functions for one instruction set each. For
// those who hold such a loop; everybody else calls reduce().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sealane::element_vectors {

#define SEALANE_INLINE [[gnu::always_inline]] inline

template <typename T>
struct Vector {
  typedef T Type __attribute__((vector_size(64)));
};
using Floats = Vector<float>::Type;
using Words = Vector<uint32_t>::Type;
typedef uint16_t HalfWords __attribute__((vector_size(32)));

template <typename To, typename From>
SEALANE_INLINE void copy_bits(To& to, const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof to);
}

// A format says how kStep bytes of memory become one vector of what is computed with, and back.
template <typename T>
struct Native {
  using Lanes = typename Vector<T>::Type;
  using Scalar = T;
  static constexpr size_t kStep = 64;
  SEALANE_INLINE static void load(Lanes& lanes, const uint8_t* from) {
    std::memcpy(&lanes, from, kStep);
  }
  SEALANE_INLINE static void store(uint8_t* to, const Lanes& lanes) {
    std::memcpy(to, &lanes, kStep);
  }
};

SEALANE_INLINE void load_words(Words& words, const uint8_t* from) {
  HalfWords halves;
  std::memcpy(&halves, from, sizeof halves);
  words = __builtin_convertvector(halves, Words);
}

SEALANE_INLINE void store_words(uint8_t* to, const Words& words) {
  const HalfWords halves = __builtin_convertvector(words, HalfWords);
  std::memcpy(to, &halves, sizeof halves);
}

struct BrainFloat {
  using Lanes = Floats;
  using Scalar = float;
  static constexpr size_t kStep = 32;

  SEALANE_INLINE static void load(Lanes& lanes, const uint8_t* from) {
    Words words;
    load_words(words, from);
    words <<= 16;
    copy_bits(lanes, words);
  }

  SEALANE_INLINE static void store(uint8_t* to, const Lanes& lanes) {
    Words bits;
    copy_bits(bits, lanes);
    const Words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const Words quiet_nan = bits >> 16 | 0x40;
    store_words(to, (bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
  }
};

struct HalfFloat {
  using Lanes = Floats;
  using Scalar = float;
  static constexpr size_t kStep = 32;

  // Moving the exponent by a multiplication treats denormals like all others.
  SEALANE_INLINE static void load(Lanes& lanes, const uint8_t* from) {
    Words half;
    load_words(half, from);
    const Words sign = (half & 0x8000) << 16;
    const Words shifted = (half & 0x7fff) << 13;
    Floats value;
    copy_bits(value, shifted);
    value *= 0x1p112f;
    Words bits;
    copy_bits(bits, value);
    bits = (half & 0x7c00) == 0x7c00 ? shifted | 0x7f800000 : bits;
    bits |= sign;
    copy_bits(lanes, bits);
  }

  SEALANE_INLINE static void store(uint8_t* to, const Lanes& lanes) {
    Words bits;
    copy_bits(bits, lanes);
    const Words sign = bits >> 16 & 0x8000;
    const Words magnitude = bits & 0x7fffffff;
    const Words normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    // Adding 0.5 lets the floating-point unit round a denormal result at the right bit.
    Floats value;
    copy_bits(value, magnitude);
    value += 0.5f;
    Words denormal;
    copy_bits(denormal, value);
    denormal -= 0x3f000000;
    Words half = magnitude < (113u << 23) ? denormal : normal;
    const Words infinity = half * 0 + 0x7c00;
    half = magnitude >= 0x477ff000 ? infinity : half;  // 65520 and above
    half = magnitude > 0x7f800000 ? (magnitude >> 13 & 0x3ff) | 0x7e00 : half;
    store_words(to, half | sign);
  }
};

struct Sum {
  template <typename Lanes>
  SEALANE_INLINE static void apply(Lanes& a, const Lanes& b) {
    a = a + b;
  }
};
// b != b is true where b is NaN, and false for integers.
struct Min {
  template <typename Lanes>
  SEALANE_INLINE static void apply(Lanes& a, const Lanes& b) {
    a = ((b < a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression)
  }
};
struct Max {
  template <typename Lanes>
  SEALANE_INLINE static void apply(Lanes& a, const Lanes& b) {
    a = ((b > a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression)
  }
};

template <typename Format, typename Operator>
struct Combine {
  SEALANE_INLINE static void step(const uint8_t* first, const uint8_t* second, uint8_t* out) {
    typename Format::Lanes a, b;
    Format::load(a, first);
    Format::load(b, second);
    Operator::apply(a, b);
    Format::store(out, a);
  }

  SEALANE_INLINE static void run(const uint8_t* first, const uint8_t* second, uint8_t* out,
                                 size_t bytes) {
    constexpr size_t kStep = Format::kStep;
    size_t at = 0;
    for (; at + kStep <= bytes; at += kStep) step(first + at, second + at, out + at);
    if (at == bytes) return;
    uint8_t a[kStep] = {}, b[kStep] = {};
    std::memcpy(a, first + at, bytes - at);
    std::memcpy(b, second + at, bytes - at);
    step(a, b, a);
    std::memcpy(out + at, a, bytes - at);
  }
};

}  // namespace sealane::element_vectors
