// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Matrices of a warp, barriers that are objects, vectors in one piece: does what nvcc makes of
// ordinary code (matrices.cu) give what it should?

#include "harness.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

class Matrices : public ::testing::Test {
 protected:
  Matrices() : program(Program::read(SEALANE_SOURCE_DIR "/tests/ptx/matrices.ptx")) {}
  void SetUp() override { ASSERT_EQ(program.error, ""); }

  // Small whole numbers: every sum is exact in every type.
  static double a_at(int row, int k) { return (row * 3 + k * 5) % 7 - 3; }
  static double b_at(int k, int column) { return (k * 2 + column * 3) % 5 - 2; }
  static double c_at(int row, int column) { return (row + column * 2) % 9 - 4; }

  template <typename T, typename Sum, typename To, typename SumTo, typename From>
  void check(const char* name, int m, int n, int k, To to, SumTo sum_to, From from) {
    const int stride = k + 8;
    std::vector<T> a(m * k), b(n * stride);
    std::vector<Sum> c(m * n);
    for (int row = 0; row < m; ++row)
      for (int i = 0; i < k; ++i) a[row * k + i] = to(a_at(row, i));
    for (int column = 0; column < n; ++column)
      for (int i = 0; i < k; ++i) b[column * stride + i] = to(b_at(i, column));
    for (int i = 0; i < m * n; ++i) c[i] = sum_to(c_at(i / n, i % n));
    const uint64_t d = program.device.add(sizeof(Sum) * m * n);
    const Launched done = program.run(name, {{1, 1, 1}, {32, 1, 1}, 0}, program.buffer(a),
                                      program.buffer(b), program.buffer(c), d, stride);
    ASSERT_EQ(done.fault, Fault::none) << name << ": " << done.message;
    const auto got = program.values<Sum>(d, m * n);
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        double wanted = 0;
        for (int i = 0; i < k; ++i) wanted += a_at(row, i) * b_at(i, column);
        wanted = 2 * wanted + c_at(row, column);
        ASSERT_EQ(from(got[column * m + row]), wanted) << name << " " << row << "," << column;
      }
    }
  }

  Program program;
};

TEST_F(Matrices, OfAWarpAreMultipliedInEveryShapeAndType) {
  const auto same = [](auto x) { return x; };
  const auto half = [](double x) { return float_to_half(static_cast<float>(x)); };
  const auto bfloat = [](double x) { return float_to_bf16(static_cast<float>(x)); };
  const auto whole = [](double x) { return static_cast<int8_t>(x); };
  check<uint16_t, float>("tile_half", 16, 16, 16, half, same, same);
  check<uint16_t, float>("tile_half_wide", 8, 32, 16, half, same, same);
  check<uint16_t, uint16_t>("tile_half_sums", 32, 8, 16, half, half, half_to_float);
  check<uint16_t, float>("tile_bfloat", 16, 16, 16, bfloat, same, same);
  check<int8_t, int32_t>("tile_bytes", 32, 8, 16, whole, same, same);
  check<double, double>("tile_double", 8, 8, 4, same, same, same);
}

TEST_F(Matrices, OutsideOfMemoryAreAFault) {
  const uint64_t small = program.device.add(64);
  const Launched done =
      program.run("tile_double", {{1, 1, 1}, {32, 1, 1}, 0}, small, small, small, small, 4);
  EXPECT_EQ(done.fault, Fault::illegal_address);
  EXPECT_NE(done.message.find("wmma.load"), std::string::npos) << done.message;
}

TEST_F(Matrices, BarrierObjectsHandABufferOver) {
  constexpr int kRounds = 20;
  for (const unsigned workers : {1u, 3u}) {
    program.workers = workers;
    const uint64_t sums = program.device.add(4 * 64 * 3);
    const Launched done = program.run("hand_over", {{3, 1, 1}, {128, 1, 1}, 0}, kRounds, sums);
    ASSERT_EQ(done.fault, Fault::none) << done.message;
    const auto got = program.values<int>(sums, 64 * 3);
    for (int i = 0; i < 64 * 3; ++i) {
      const int once = 63 - i % 64 + i / 64;
      ASSERT_EQ(got[i], kRounds * once + 100 * kRounds * (kRounds - 1) / 2) << i;
    }
  }
}

TEST_F(Matrices, WhoLeavesABarrierObjectKeepsNobodyWaiting) {
  const uint64_t out = program.device.add(4 * 64);
  const Launched done = program.run("some_leave", {{1, 1, 1}, {128, 1, 1}, 0}, out);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<int>(out, 64);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(got[i], 2 * i);
}

TEST_F(Matrices, CopiesArriveAtABarrierObject) {
  constexpr int kCount = 300;
  std::vector<int> from(kCount);
  for (int i = 0; i < kCount; ++i) from[i] = i * i;
  const uint64_t to = program.device.add(4 * kCount);
  const Launched done =
      program.run("copied", {{1, 1, 1}, {64, 1, 1}, 4 * kCount}, program.buffer(from), to, kCount);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  const auto got = program.values<int>(to, kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(got[i], from[kCount - 1 - i]);
}

TEST_F(Matrices, AVectorIsSeenWholeOrNotAtAll) {
  program.workers = 2;
  const uint64_t line = program.device.add(16 * 32);
  const uint64_t wrong = program.device.add(4);
  const Launched done = program.run("lines", {{2, 1, 1}, {32, 1, 1}, 0}, line, 20000, wrong);
  ASSERT_EQ(done.fault, Fault::none) << done.message;
  EXPECT_EQ(program.values<uint32_t>(wrong, 1)[0], 0u);
}

}  // namespace
}  // namespace sealane::ptx
