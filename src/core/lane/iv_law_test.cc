// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a position become the IV a Hopper channel would use?

#include "core/lane/iv_law.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>

#include "base/random.h"

namespace sealane {
namespace {

IvLaw some_law(uint64_t seed) {
  IvLaw law;
  SeededRandom(seed).fill(law.mask);
  law.channel = seed;
  return law;
}

TEST(IvLaw, IsTheCounterXorTheMask) {
  const IvLaw law{.mask = {0xff, 0, 0, 0, 0x0f}, .channel = 0x1122334455667788};
  const Iv expected = {0xff ^ 0x04, 0x03, 0x02, 0x01, 0x0f ^ 0x88, 0x77,
                       0x66,        0x55, 0x44, 0x33, 0x22,        0x11};
  EXPECT_EQ(law.iv(0x01020304), expected);
}

// The property that lets the counter be learned from a stream: neighbours differ in a run of ones.
RC_GTEST_PROP(IvLawProperty, ConsecutiveIvsXorToARunOfOnes, (uint32_t position, uint64_t seed)) {
  RC_PRE(position < 0xffffffffu);
  const IvLaw law = some_law(seed);
  const Iv a = law.iv(position);
  const Iv b = law.iv(position + 1);
  const uint32_t difference = load_le<uint32_t>(a.data()) ^ load_le<uint32_t>(b.data());
  RC_ASSERT(std::has_single_bit(uint64_t{difference} + 1));
  RC_ASSERT(std::equal(a.begin() + 4, a.end(), b.begin() + 4));
}

RC_GTEST_PROP(IvLawProperty, DifferentPositionsHaveDifferentIvs, (uint32_t a, uint32_t b)) {
  RC_PRE(a != b);
  RC_ASSERT(some_law(3).iv(a) != some_law(3).iv(b));
}

}  // namespace
}  // namespace sealane
