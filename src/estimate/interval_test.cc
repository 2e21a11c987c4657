// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does an interval hold four out of five, however many draws it is made of?

#include "estimate/interval.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sealane::estimate {
namespace {

TEST(Interval, MoreDrawsDoNotMakeItWider) {
  for (const uint32_t draws : {9u, 10u, 19u, 50u, 199u}) {
    SeededRandom random(draws);
    const auto draw = [&] { return static_cast<double>(random.below(1'000'000)); };
    constexpr int kTimes = 20'000;
    int inside = 0;
    for (int i = 0; i < kTimes; ++i) {
      std::vector<double> drawn(draws);
      for (double& value : drawn) value = draw();
      const double predicted = drawn.front();  // one of them, so that it adds nothing
      const double next = draw();
      inside += four_in_five(predicted, drawn).overlaps(next, next) ? 1 : 0;
    }
    EXPECT_GE(inside, 0.79 * kTimes) << draws;
    EXPECT_LE(inside, 0.86 * kTimes) << draws;
  }
}

TEST(Interval, WhatWasPredictedIsInside) {
  const Interval range = four_in_five(20, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(range.low, 1);
  EXPECT_EQ(range.high, 20);
  EXPECT_FALSE(four_in_five(20, {}).known());
}

}  // namespace
}  // namespace sealane::estimate
