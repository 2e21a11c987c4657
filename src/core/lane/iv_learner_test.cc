// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is the IV law learned from any channel's IVs, and is every departure from it noticed?

#include "core/lane/iv_learner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/lane/iv_law.h"

namespace sealane {
namespace {

IvLaw any_law() {
  IvLaw law;
  for (uint8_t& byte : law.mask) byte = *rc::gen::arbitrary<uint8_t>();
  law.channel = *rc::gen::arbitrary<uint64_t>();
  return law;
}

RC_GTEST_PROP(IvLearner, FollowsAnyChannelFromAnyPosition, ()) {
  const IvLaw law = any_law();
  const uint32_t start = *rc::gen::inRange<uint32_t>(0, UINT32_MAX - 1000);
  IvLearner learner;
  uint64_t foretold = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const Iv iv = law.iv(start + i);
    if (const auto next = learner.next()) {
      ++foretold;
      RC_ASSERT(*next == iv);
    }
    RC_ASSERT(learner.observe(iv));
  }
  RC_ASSERT(learner.broken() == 0u);
  RC_ASSERT(foretold >= 980u);  // all but the steps beyond what was ever seen
}

RC_GTEST_PROP(IvLearner, NoticesASkippedMessage, ()) {
  const IvLaw law = any_law();
  const uint32_t start = *rc::gen::inRange<uint32_t>(0, 1 << 20);
  const uint32_t before = *rc::gen::inRange<uint32_t>(1, 300);
  IvLearner learner;
  for (uint32_t i = 0; i < before; ++i) RC_ASSERT(learner.observe(law.iv(start + i)));
  RC_ASSERT(!learner.observe(law.iv(start + before + 1)));
  RC_ASSERT(learner.broken() == 1u);
}

TEST(IvLearner, NoticesARepeatedAndARandomIv) {
  const IvLaw law{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 7};
  IvLearner learner;
  EXPECT_TRUE(learner.observe(law.iv(41)));
  EXPECT_TRUE(learner.observe(law.iv(42)));
  EXPECT_FALSE(learner.observe(law.iv(42)));
  EXPECT_FALSE(learner.observe({9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(learner.seen(), 4u);
  EXPECT_EQ(learner.broken(), 2u);
}

TEST(IvLearner, ForetellsNothingFromOneMessage) {
  IvLearner learner;
  learner.observe(IvLaw{}.iv(6));
  EXPECT_EQ(learner.next(), std::nullopt);
  learner.observe(IvLaw{}.iv(7));
  EXPECT_EQ(learner.next(), std::nullopt);  // its one known bit is a one: the carry is unknown
  learner.observe(IvLaw{}.iv(8));
  EXPECT_EQ(learner.next(), IvLaw{}.iv(9));
}

}  // namespace
}  // namespace sealane
