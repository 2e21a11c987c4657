// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a program that waits for its copies told from one that does not?

#include "core/pipeline/waited_copies.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

constexpr Duration kSaved{30'000};

// Of so many copies one finds nothing under way.
bool pay(Duration between, int of, int copies = 200) {
  WaitedCopies waited;
  for (int i = 0; i < copies; ++i) {
    waited.observe(i % of == 0 ? kSaved : Duration{0}, Instant{} + between * (i + 1));
  }
  return waited.pay();
}

TEST(WaitedCopies, WhoAsksOnlyWhenAllHaveArrivedWaitsForThem) {
  EXPECT_TRUE(pay(Duration{300'000}, 1));
  EXPECT_TRUE(pay(Duration{900'000}, 1));
}

TEST(WaitedCopies, WhoAsksForManyAtATimeDoesNot) {
  EXPECT_FALSE(pay(Duration{300'000}, 16));
  EXPECT_TRUE(pay(Duration{30'000}, 16)) << "unless that is often enough";
}

TEST(WaitedCopies, WhatIsSavedIsAShareOfTheTime) {
  EXPECT_FALSE(pay(Duration{5'000'000}, 1)) << "30 us in 5 ms";
}

TEST(WaitedCopies, AFewCopiesSayNothing) {
  EXPECT_FALSE(pay(Duration{300'000}, 1, WaitedCopies::kSeenMin - 1));
  EXPECT_TRUE(pay(Duration{300'000}, 1, WaitedCopies::kSeenMin));
}

TEST(WaitedCopies, NearTheLimitItDoesNotFlicker) {
  WaitedCopies waited;
  Instant now{};
  const auto ask = [&](int copies, int64_t share) {
    for (int i = 0; i < copies; ++i) waited.observe(kSaved, now += kSaved * share);
    return waited.pay();
  };
  EXPECT_FALSE(ask(200, 80)) << "not enough to begin";
  EXPECT_TRUE(ask(200, 48));
  EXPECT_TRUE(ask(200, 80)) << "enough to go on";
  EXPECT_FALSE(ask(200, 112));
}

}  // namespace
}  // namespace sealane
