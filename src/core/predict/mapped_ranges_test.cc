// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is only mapped memory called mapped, also when there are too many pieces?
#include "core/predict/mapped_ranges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bitset>

namespace sealane {
namespace {

TEST(MappedRanges, FreedPartsAreGone) {
  MappedRanges mapped;
  mapped.add({100, 100});
  mapped.erase({140, 20});
  EXPECT_TRUE(mapped.contains({120, 20}));
  EXPECT_FALSE(mapped.contains({130, 20}));
  EXPECT_TRUE(mapped.contains({160, 40}));
  EXPECT_FALSE(mapped.contains({160, 41}));
}

TEST(MappedRanges, NeighboursAreOne) {
  MappedRanges mapped;
  mapped.add({100, 100});
  mapped.add({300, 100});
  mapped.add({200, 100});
  EXPECT_EQ(mapped.count(), 1U);
  EXPECT_TRUE(mapped.contains({150, 200}));
}

TEST(MappedRanges, TooManyPiecesNeverBecomeMoreBytes) {
  MappedRanges mapped;
  constexpr uint64_t kPieces = 4 * MappedRanges::kMax;
  for (uint64_t i = 0; i < kPieces; ++i) mapped.add({i * 7919 % kPieces * 100, 10});
  EXPECT_LE(mapped.count(), MappedRanges::kMax);
  for (uint64_t i = 0; i < kPieces; ++i) EXPECT_FALSE(mapped.contains({i * 100 + 10, 90}));
}

RC_GTEST_PROP(MappedRangesProperty, AgreesWithOneBitPerByte, ()) {
  constexpr uint64_t kBytes = 512;
  MappedRanges mapped;
  std::bitset<kBytes> bits;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto address = *rc::gen::inRange<uint64_t>(0, kBytes - 1);
    const Range range{address, *rc::gen::inRange<uint64_t>(1, kBytes - address)};
    const bool add = *rc::gen::arbitrary<bool>();
    add ? mapped.add(range) : mapped.erase(range);
    for (uint64_t at = range.address; at < range.end(); ++at) bits[at] = add;
  }
  for (uint64_t at = 0; at < kBytes; ++at) RC_ASSERT(mapped.contains({at, 1}) == bits[at]);
}

}  // namespace
}  // namespace sealane
