// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the vector arithmetic agree with arithmetic a reader can check, for every type, operator,
// length and alignment?

#include "seal/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace sealane {
namespace {

// IEEE half to float by its definition.
float half_value(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

float brain_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// The nearest of all representable values, ties to even: slow and beyond doubt.
template <float (*Value)(uint16_t)>
uint16_t nearest(float wanted) {
  const uint16_t sign = std::signbit(wanted) ? 0x8000 : 0;
  const float magnitude = std::fabs(wanted);
  uint16_t low = 0;
  uint16_t high = Value == half_value ? 0x7c00 : 0x7f80;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (Value(middle) <= magnitude ? low : high) = middle;
  }
  if (Value(low) == magnitude) return sign | low;
  // Beyond the largest finite value, infinity stands where the next value would be.
  const double below = Value(low);
  const double step = below - Value(static_cast<uint16_t>(low - 1));
  const double above = std::isinf(Value(high)) ? below + step : Value(high);
  const double middle = (below + above) / 2;
  if (magnitude < middle) return sign | low;
  if (magnitude > middle) return sign | high;
  return sign | ((low & 1) == 0 ? low : high);
}

template <typename T>
T reference(ReduceOperator op, T a, T b) {
  if (op == ReduceOperator::min) return b < a || b != b ? b : a;
  if (op == ReduceOperator::max) return b > a || b != b ? b : a;
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <typename T>
void check_native(ElementType type) {
  SeededRandom random(7);
  for (const ReduceOperator op : {ReduceOperator::sum, ReduceOperator::min, ReduceOperator::max}) {
    for (const size_t count : {0, 1, 3, 15, 16, 17, 64, 100, 4097}) {
      for (const size_t shift : {0, 1}) {  // elements off alignment
        std::vector<T> a(count + shift), b(count + shift), out(count + shift);
        for (T& v : a) v = static_cast<T>(static_cast<int64_t>(random.next() >> 20));
        for (T& v : b) v = static_cast<T>(static_cast<int64_t>(random.next() >> 20));
        const auto bytes = [&](std::vector<T>& v) {
          return MutableBytes(reinterpret_cast<uint8_t*>(v.data() + shift), count * sizeof(T));
        };
        reduce(type, op, bytes(a), bytes(b), bytes(out));
        for (size_t i = shift; i < out.size(); ++i) {
          ASSERT_EQ(out[i], reference(op, a[i], b[i])) << "element " << i;
        }
        reduce(type, op, bytes(a), bytes(b), bytes(b));  // in place
        ASSERT_TRUE(std::equal(b.begin() + static_cast<ptrdiff_t>(shift), b.end(),
                               out.begin() + static_cast<ptrdiff_t>(shift)));
      }
    }
  }
}

TEST(Reduce, AgreesWithScalarArithmetic) {
  check_native<float>(ElementType::float32);
  check_native<double>(ElementType::float64);
  check_native<int32_t>(ElementType::int32);
  check_native<int64_t>(ElementType::int64);
  check_native<uint8_t>(ElementType::uint8);
}

MutableBytes bytes_of(std::vector<uint16_t>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * 2};
}

template <float (*Value)(uint16_t)>
void check_sixteen_bits(ElementType type) {
  SeededRandom random(11);
  std::vector<uint16_t> a(65536), b(65536), out(65536);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint16_t>(i);  // every value there is
    b[i] = static_cast<uint16_t>(random.next());
    if (i % 4 == 0) b[i] = a[i] ^ 0x8000;                                           // cancels
    if (i % 4 == 1) b[i] = static_cast<uint16_t>(a[i] ^ (random.next() & 0x8fff));  // near
  }
  reduce(type, ReduceOperator::sum, bytes_of(a), bytes_of(b), bytes_of(out));
  for (size_t i = 0; i < a.size(); ++i) {
    const float sum = Value(a[i]) + Value(b[i]);
    if (std::isnan(sum)) {
      ASSERT_TRUE(std::isnan(Value(out[i]))) << i;
    } else {
      ASSERT_EQ(out[i], nearest<Value>(sum)) << Value(a[i]) << " + " << Value(b[i]);
    }
  }
}

TEST(Reduce, HalfSumsAreTheNearestHalf) { check_sixteen_bits<half_value>(ElementType::float16); }
TEST(Reduce, BrainSumsAreTheNearestBrain) {
  check_sixteen_bits<brain_value>(ElementType::bfloat16);
}

TEST(Reduce, NanWinsOnEitherSide) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOperator op : {ReduceOperator::min, ReduceOperator::max, ReduceOperator::sum}) {
    const float a[2] = {nan, 1};
    const float b[2] = {1, nan};
    float out[2];
    const auto bytes = [](const float* v) {
      return Bytes(reinterpret_cast<const uint8_t*>(v), 2 * sizeof(float));
    };
    reduce(ElementType::float32, op, bytes(a), bytes(b),
           {reinterpret_cast<uint8_t*>(out), sizeof out});
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  }
}

TEST(Reduce, DivideEndsAnAverage) {
  std::vector<float> floats(37, 10);
  divide(ElementType::float32, {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * 4}, 4);
  for (const float value : floats) EXPECT_EQ(value, 2.5f);
  std::vector<int32_t> ints(37, -7);
  divide(ElementType::int32, {reinterpret_cast<uint8_t*>(ints.data()), ints.size() * 4}, 2);
  for (const int32_t value : ints) EXPECT_EQ(value, -3);
  std::vector<uint16_t> halves(37, 0x4900);  // 10
  divide(ElementType::float16, bytes_of(halves), 4);
  for (const uint16_t value : halves) EXPECT_EQ(half_value(value), 2.5f);
  std::vector<uint8_t> bytes(70, 200);
  divide(ElementType::uint8, bytes, 3);
  for (const uint8_t value : bytes) EXPECT_EQ(value, 66);
  divide(ElementType::uint8, bytes, 300);
  for (const uint8_t value : bytes) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace sealane
