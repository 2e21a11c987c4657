// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is freed memory remembered as freed until it is seen, also when there are too many pieces?
#include "core/predict/freed_ranges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bitset>

namespace sealane {
namespace {

TEST(FreedRanges, SeenPartsAreInUseAgain) {
  FreedRanges freed;
  freed.add({100, 100});
  freed.erase({140, 20});
  EXPECT_TRUE(freed.overlaps({130, 20}));
  EXPECT_FALSE(freed.overlaps({140, 20}));
  EXPECT_TRUE(freed.overlaps({160, 1}));
  EXPECT_FALSE(freed.overlaps({200, 10}));
}

TEST(FreedRanges, TooManyPiecesNeverBecomeFewerBytes) {
  FreedRanges freed;
  constexpr uint64_t kPieces = 4 * FreedRanges::kMax;
  for (uint64_t i = 0; i < kPieces; ++i) freed.add({i * 7919 % kPieces * 100, 10});
  EXPECT_LE(freed.count(), FreedRanges::kMax);
  for (uint64_t i = 0; i < kPieces; ++i) EXPECT_TRUE(freed.overlaps({i * 100, 10}));
}

RC_GTEST_PROP(FreedRangesProperty, AgreesWithOneBitPerByte, ()) {
  constexpr uint64_t kBytes = 512;
  FreedRanges freed;
  std::bitset<kBytes> bits;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto address = *rc::gen::inRange<uint64_t>(0, kBytes - 1);
    const Range range{address, *rc::gen::inRange<uint64_t>(1, kBytes - address)};
    const bool add = *rc::gen::arbitrary<bool>();
    add ? freed.add(range) : freed.erase(range);
    for (uint64_t at = range.address; at < range.end(); ++at) bits[at] = add;
  }
  for (uint64_t at = 0; at < kBytes; ++at) RC_ASSERT(freed.overlaps({at, 1}) == bits[at]);
}

}  // namespace
}  // namespace sealane
