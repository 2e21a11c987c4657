// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantised products (quantised.cu): does device code round, convert, multiply bytes and sum over
// lanes as the host does in the same order, to the last bit?

#include "quantised.h"

#include <array>
#include <cmath>
#include <random>

#include "harness.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

// Lanes add in pairs 16, 8, 4, 2, 1 apart.
template <typename T, typename Fn>
T over_lanes(std::array<T, 32> values, Fn fn) {
  for (unsigned step = 16; step > 0; step /= 2) {
    const auto before = values;
    for (unsigned i = 0; i < 32; ++i) values[i] = fn(before[i], before[i ^ step]);
  }
  return values[0];
}

float add(float a, float b) { return a + b; }

Activations quantised(const float* x) {
  std::array<float, 32> sizes, values;
  for (unsigned i = 0; i < 32; ++i) values[i] = x[i], sizes[i] = std::fabs(x[i]);
  const float largest = over_lanes(sizes, [](float a, float b) { return std::max(a, b); });
  const float scale = largest / 127.0f;
  Activations out{};
  for (unsigned i = 0; i < 32; ++i) {
    out.values[i] = largest == 0 ? 0 : static_cast<signed char>(std::round(x[i] / scale));
  }
  out.scale = float_to_half(scale);
  out.sum = float_to_half(over_lanes(values, add));
  return out;
}

float product(const Weights* weights, const Activations* activations, int blocks) {
  std::array<float, 32> totals{};
  for (int i = 0; i < 2 * blocks; ++i) {
    const Weights& w = weights[i / 2];
    const Activations& a = activations[i / 2];
    int sum = 0;
    for (int k = i % 2 * 8; k < i % 2 * 8 + 8; ++k) {
      sum += (w.values[k] & 15) * a.values[k] + (w.values[k] >> 4) * a.values[k + 16];
    }
    const float part =
        std::fma(static_cast<float>(sum), half_to_float(a.scale), -(4.0f * half_to_float(a.sum)));
    totals[i % 32] = std::fma(half_to_float(w.scale), part, totals[i % 32]);
  }
  return over_lanes(totals, add);
}

TEST(Quantised, ProductsAreTheHostsToTheLastBit) {
  constexpr int kBlocks = 40, kRows = 64;
  Program program(Program::read(SEALANE_SOURCE_DIR "/tests/ptx/quantised.ptx"));
  ASSERT_EQ(program.error, "");
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::vector<float> x(kBlocks * 32);
  for (float& value : x) value = normal(random);
  std::fill_n(x.begin() + 64, 32, 0.0f);                                    // no scale
  x[96] = 127, x[97] = 0.5f, x[98] = -0.5f, x[99] = 2.5f, x[100] = 1e-30f;  // ties, and nothing
  std::vector<Weights> weights(kBlocks * kRows);
  for (Weights& w : weights) {
    w.scale = float_to_half(normal(random) / 100);
    for (unsigned char& packed : w.values) packed = static_cast<unsigned char>(random());
  }
  const uint64_t activations = program.device.add(kBlocks * sizeof(Activations));
  Launched done = program.run("quantise", {{kBlocks / 8, 1, 1}, {256, 1, 1}, 0}, program.buffer(x),
                              activations);
  ASSERT_EQ(done.message, "");
  const auto got = program.values<Activations>(activations, kBlocks);
  std::vector<Activations> wanted;
  for (int i = 0; i < kBlocks; ++i) wanted.push_back(quantised(&x[i * 32]));
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), kBlocks * sizeof(Activations)), 0);

  const uint64_t out = program.device.add(kRows * sizeof(float));
  done = program.run("multiply", {{kRows, 1, 1}, {32, 1, 1}, 0}, program.buffer(weights),
                     activations, out, kBlocks);
  ASSERT_EQ(done.message, "");
  const auto products = program.values<float>(out, kRows);
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(products[row], product(&weights[row * kBlocks], wanted.data(), kBlocks)) << row;
  }
}

}  // namespace
}  // namespace sealane::ptx
