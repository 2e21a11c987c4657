// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One body per (format, operator), written with the compilers' portable vector types and inlined
// into one function per instruction set; which of them runs is decided once, by asking the CPU.

#include "seal/reduce.h"

#include <cstring>

#include "base/check.h"

namespace sealane {
namespace {

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

using Kernel = void (*)(const uint8_t* first, const uint8_t* second, uint8_t* out, size_t bytes);

template <typename Body>
void on_any_cpu(const uint8_t* first, const uint8_t* second, uint8_t* out, size_t bytes) {
  Body::run(first, second, out, bytes);
}
#if defined(__x86_64__)
template <typename Body>
[[gnu::target("avx2")]] void on_avx2(const uint8_t* first, const uint8_t* second, uint8_t* out,
                                     size_t bytes) {
  Body::run(first, second, out, bytes);
}
template <typename Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void on_avx512(const uint8_t* first,
                                                                     const uint8_t* second,
                                                                     uint8_t* out, size_t bytes) {
  Body::run(first, second, out, bytes);
}
#endif

enum class InstructionSet { any, avx2, avx512 };

InstructionSet instruction_set() {
#if defined(__x86_64__)
  static const InstructionSet best = [] {
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (wide) return InstructionSet::avx512;
    return __builtin_cpu_supports("avx2") ? InstructionSet::avx2 : InstructionSet::any;
  }();
  return best;
#else
  return InstructionSet::any;
#endif
}

template <typename Body>
Kernel dispatch() {
#if defined(__x86_64__)
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return on_avx512<Body>;
    case InstructionSet::avx2:
      return on_avx2<Body>;
    case InstructionSet::any:
      break;
  }
#endif
  return on_any_cpu<Body>;
}

// Signed integers are added as unsigned ones: they wrap instead of being undefined.
template <typename Summed, typename Compared = Summed>
Kernel kernel_of(ReduceOperator op) {
  switch (op) {
    case ReduceOperator::min:
      return dispatch<Combine<Compared, Min>>();
    case ReduceOperator::max:
      return dispatch<Combine<Compared, Max>>();
    default:
      return dispatch<Combine<Summed, Sum>>();
  }
}

Kernel kernel_of(ElementType type, ReduceOperator op) {
  switch (type) {
    case ElementType::float32:
      return kernel_of<Native<float>>(op);
    case ElementType::float64:
      return kernel_of<Native<double>>(op);
    case ElementType::float16:
      return kernel_of<HalfFloat>(op);
    case ElementType::bfloat16:
      return kernel_of<BrainFloat>(op);
    case ElementType::int32:
      return kernel_of<Native<uint32_t>, Native<int32_t>>(op);
    case ElementType::int64:
      return kernel_of<Native<uint64_t>, Native<int64_t>>(op);
    default:
      return kernel_of<Native<uint8_t>>(op);
  }
}

// Division runs once per element of a whole collective; the compiler's own vectors will do.
template <typename Format>
void divide_all(MutableBytes data, uint32_t count) {
  using Scalar = typename Format::Scalar;
  const auto divisor = static_cast<Scalar>(count);
  typename Format::Lanes lanes;
  const auto step = [&](uint8_t* at) {
    Format::load(lanes, at);
    for (size_t i = 0; i < sizeof lanes / sizeof(Scalar); ++i) lanes[i] = lanes[i] / divisor;
    Format::store(at, lanes);
  };
  size_t at = 0;
  for (; at + Format::kStep <= data.size(); at += Format::kStep) step(data.data() + at);
  if (at == data.size()) return;
  uint8_t rest[Format::kStep] = {};
  std::memcpy(rest, data.data() + at, data.size() - at);
  step(rest);
  std::memcpy(data.data() + at, rest, data.size() - at);
}

}  // namespace

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::float64:
    case ElementType::int64:
      return 8;
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::uint8:
      return 1;
    case ElementType::none:
      break;
  }
  SEALANE_CHECK(false, "element type none has no size");
  return 0;
}

void reduce(ElementType type, ReduceOperator op, Bytes first, Bytes second, MutableBytes out) {
  SEALANE_CHECK(first.size() == second.size() && first.size() == out.size(), "sizes differ");
  SEALANE_CHECK(type != ElementType::none && op != ReduceOperator::none, "nothing to compute");
  kernel_of(type, op)(first.data(), second.data(), out.data(), out.size());
}

void divide(ElementType type, MutableBytes data, uint32_t count) {
  SEALANE_CHECK(count > 0, "average of nothing");
  switch (type) {
    case ElementType::float32:
      return divide_all<Native<float>>(data, count);
    case ElementType::float64:
      return divide_all<Native<double>>(data, count);
    case ElementType::float16:
      return divide_all<HalfFloat>(data, count);
    case ElementType::bfloat16:
      return divide_all<BrainFloat>(data, count);
    case ElementType::int32:
      return divide_all<Native<int32_t>>(data, count);
    case ElementType::int64:
      return divide_all<Native<int64_t>>(data, count);
    default:
      // A count above 255 cannot be a uint8 divisor, and no uint8 sum can reach it.
      return count <= 255 ? divide_all<Native<uint8_t>>(data, count)
                          : static_cast<void>(std::memset(data.data(), 0, data.size()));
  }
}

}  // namespace sealane
