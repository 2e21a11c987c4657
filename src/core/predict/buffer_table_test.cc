// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a range keep its number until it is freed, whatever its length, and who makes room?
#include "core/predict/buffer_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "base/bytes.h"

namespace sealane {
namespace {

TEST(BufferTable, SameRangeSameId) {
  BufferTable table(8);
  const BufferId a = table.intern({0x1000, 64});
  const BufferId b = table.intern({0x1000, 128});
  EXPECT_NE(a, b);
  EXPECT_EQ(table.intern({0x1000, 64}), a);
  EXPECT_EQ(table.range(b), (Range{0x1000, 128}));
  EXPECT_EQ(table.size(), 2u);
}

TEST(BufferTable, RangesThatCarryNothingHaveNoId) {
  BufferTable table(8);
  EXPECT_FALSE(table.intern({0x1000, 0}).valid());
  EXPECT_FALSE(table.intern({UINT64_MAX, 2}).valid());
  EXPECT_TRUE(table.intern({0, UINT64_MAX}).valid());
  EXPECT_EQ(table.size(), 1u);
}

TEST(BufferTable, FreeEndsEveryRangeItTouches) {
  BufferTable table(8);
  const BufferId inside = table.intern({0x1000, 16});
  const BufferId around = table.intern({0x0800, 8_MiB});
  const BufferId beside = table.intern({0x1010, 16});
  table.forget({0x1000, 16});
  EXPECT_FALSE(table.alive(inside));
  EXPECT_FALSE(table.alive(around));
  EXPECT_TRUE(table.alive(beside));
  EXPECT_NE(table.intern({0x1000, 16}), inside) << "seen again, but it is another buffer";
}

TEST(BufferTable, WhatRecursStaysWhenItIsFull) {
  BufferTable table(16);
  const Range hot{0x100000, 64};
  const BufferId id = table.intern(hot);
  for (uint64_t i = 0; i < 1000; ++i) {
    const BufferId noise = table.intern({0x200000 + 64 * i, 64});
    EXPECT_TRUE(table.alive(noise));
    if (i % 8 == 0) {
      ASSERT_EQ(table.intern(hot), id) << "pushed out by noise after " << i;
    }
  }
  EXPECT_EQ(table.size(), table.capacity());
}

// Lengths from bytes to gigabytes, so that every kind of cell of the index takes part.
Range any_range() {
  const auto bytes = uint64_t{1} << *rc::gen::inRange(0, 36);
  return {*rc::gen::inRange<uint64_t>(0, 64) * (uint64_t{1} << *rc::gen::inRange(0, 32)),
          bytes + *rc::gen::inRange<uint64_t>(0, bytes)};
}

RC_GTEST_PROP(BufferTableProperty, KnowsWhatWasInternedAndNotFreed, ()) {
  BufferTable table(256);
  std::map<Range, BufferId> known;
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    const Range range = any_range();
    if (*rc::gen::inRange(0, 4) > 0) {
      const BufferId id = table.intern(range);
      const auto [at, added] = known.emplace(range, id);
      RC_ASSERT(added || at->second == id);
    } else {
      table.forget(range);
      std::erase_if(known, [&](const auto& entry) {
        const bool freed = entry.first.overlaps(range);
        RC_ASSERT(table.alive(entry.second) != freed);
        return freed;
      });
    }
    RC_ASSERT(table.size() == known.size());
  }
  for (const auto& [range, id] : known) {
    RC_ASSERT(table.alive(id));
    RC_ASSERT(table.range(id) == range);
  }
}

}  // namespace
}  // namespace sealane
