// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Are the next IVs of a channel known from those it has used?

#include "core/lane/iv_follower.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"
#include "core/lane/iv_law.h"

namespace sealane {
namespace {

IvLaw some_law(uint64_t seed) {
  IvLaw law;
  SeededRandom(seed).fill(law.mask);
  law.channel = seed;
  return law;
}

TEST(IvFollower, KnowsAYoungChannelFromItsFirstTwoMessages) {
  const IvLaw law = some_law(1);
  IvFollower follower;
  EXPECT_FALSE(follower.observe(law.iv(0)));
  EXPECT_EQ(follower.observe(law.iv(1)), 1u);
  for (uint64_t steps = 1; steps < 5000; ++steps) {
    ASSERT_EQ(follower.predict(steps), law.iv(1 + steps)) << steps;
  }
}

TEST(IvFollower, AnotherChannelIsABeginning) {
  IvFollower follower;
  follower.observe(some_law(1).iv(7));
  EXPECT_EQ(follower.observe(some_law(1).iv(8)), 1u);
  EXPECT_FALSE(follower.observe(some_law(2).iv(9)));
  EXPECT_EQ(follower.observe(some_law(2).iv(10)), 1u);
}

TEST(IvFollower, TheSameIvAgainIsNotExplained) {
  IvFollower follower;
  follower.observe(some_law(1).iv(7));
  EXPECT_FALSE(follower.observe(some_law(1).iv(7)));
}

// A channel of any age: whoever has watched 2^k messages knows the next ones up to the next carry
// beyond the bits that were shown.
RC_GTEST_PROP(IvFollowerProperty, LearnsTheCounterFromTheStream, (uint64_t seed)) {
  const auto start = *rc::gen::inRange<uint32_t>(0, 0xfffff000u);
  const auto watched = *rc::gen::inRange<uint32_t>(2, 600);
  const IvLaw law = some_law(seed);
  IvFollower follower;
  for (uint32_t i = 0; i < watched; ++i) {
    const auto steps = follower.observe(law.iv(start + i));
    if (i > 0) RC_ASSERT(steps == 1u);
  }
  const uint32_t shown = std::bit_floor(watched);  // at least so many values of the low bits
  const uint32_t at = (start + watched - 1) % shown;
  for (uint32_t steps = 1; at + steps < shown; ++steps) {
    RC_ASSERT(follower.predict(steps) == law.iv(start + watched - 1 + steps));
  }
}

RC_GTEST_PROP(IvFollowerProperty, CountsMessagesItDidNotSee, (uint64_t seed)) {
  const auto gap = *rc::gen::inRange<uint32_t>(1, 30);
  const IvLaw law = some_law(seed);
  IvFollower follower;
  for (uint32_t i = 0; i < 64; ++i) follower.observe(law.iv(i));
  RC_PRE(63 + gap >= 64);
  follower.observe(law.iv(64));
  RC_ASSERT(follower.observe(law.iv(64 + gap)) == gap);
}

}  // namespace
}  // namespace sealane
