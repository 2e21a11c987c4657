// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what was sealed into a slot dropped once and in its turn, and is nothing read behind the back
// of whoever frees its source?

#include "core/pipeline/sealed_slots.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

SealSlot seal(SlotId slot, CopyId copy = kNoCopy) {
  return {.slot = slot,
          .host = {0x1000 * (slot + 1), 0x1000},
          .from = {0x1000 * (slot + 1) + (copy == kNoCopy ? 0 : 0x100000), 0x1000},
          .copy = copy,
          .key = 1,
          .iv = {},
          .digest = false};
}

template <typename Kind>
const Kind* take(SealedSlots& slots, std::optional<SealAction>& kept) {
  kept = slots.take();
  return kept ? std::get_if<Kind>(&*kept) : nullptr;
}

TEST(SealedSlots, WhatWasSealedIsDroppedOnceBeforeItsSlotIsSealedAgain) {
  SealedSlots slots(4);
  std::optional<SealAction> kept;
  slots.begin(seal(2));
  ASSERT_NE(take<SealSlot>(slots, kept), nullptr);
  slots.end(2, true);
  slots.drop(2, false);
  slots.drop(2, false);
  slots.begin(seal(2, 7));
  const auto* dropped = take<DropSlot>(slots, kept);
  ASSERT_NE(dropped, nullptr);
  EXPECT_FALSE(dropped->exposed);
  const auto* again = take<SealSlot>(slots, kept);
  ASSERT_NE(again, nullptr) << "dropped twice";
  EXPECT_EQ(again->copy, 7U);
  EXPECT_FALSE(slots.take());
}

TEST(SealedSlots, WhatNobodySealedNeedsNoWiping) {
  SealedSlots slots(4);
  slots.begin(seal(0));
  slots.take();
  slots.end(0, false);
  slots.drop(0, false);
  EXPECT_FALSE(slots.take());
}

TEST(SealedSlots, ReadsItsSourceUntilTheWorkerIsDone) {
  SealedSlots slots(4);
  slots.begin(seal(0));
  slots.begin(seal(1, 9));
  std::vector<Range> ahead;
  slots.sealing_ahead({0, 0x100000}, ahead);
  EXPECT_EQ(ahead, std::vector<Range>{seal(0).host}) << "of a request it reads the snapshot";
  EXPECT_TRUE(slots.reads(seal(0).host));
  EXPECT_FALSE(slots.reads(seal(1, 9).host));
  EXPECT_TRUE(slots.reads(seal(1, 9).from));
  EXPECT_TRUE(slots.sealing_for(9));
  slots.end(0, true);
  slots.end(1, true);
  EXPECT_FALSE(slots.reads({0, 0x200000}));
  EXPECT_FALSE(slots.sealing_for(9));
  EXPECT_FALSE(slots.sealing());
}

TEST(SealedSlots, StoppingDropsAllButWhatIsBeingSent) {
  SealedSlots slots(4);
  std::optional<SealAction> kept;
  for (const SlotId id : {0, 1, 2}) slots.begin(seal(id));
  for (int i = 0; i < 3; ++i) slots.take();
  slots.end(0, true);
  slots.end(1, true);
  slots.begin(seal(3));  // nobody has begun with it
  slots.drop_all(1);
  const auto* dropped = take<DropSlot>(slots, kept);
  ASSERT_NE(dropped, nullptr);
  EXPECT_EQ(dropped->slot, 0U);
  EXPECT_FALSE(slots.take()) << "what is sent stays, and nothing more is sealed";
  EXPECT_TRUE(slots.reads(seal(2).host)) << "a worker is still at it";
  EXPECT_FALSE(slots.reads(seal(3).host));
  slots.drop(1, true);
  dropped = take<DropSlot>(slots, kept);
  ASSERT_NE(dropped, nullptr);
  EXPECT_TRUE(dropped->exposed);
}

}  // namespace
}  // namespace sealane
