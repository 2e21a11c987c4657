// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/outlook.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sealane {
namespace {

Costs costs(double seal_gb_per_s, double copy_gb_per_s, uint32_t threads) {
  Costs made;
  made.seal_ns_per_byte = 1 / seal_gb_per_s;
  made.copy_ns_per_byte = 1 / copy_gb_per_s;
  made.link_ns_per_byte = 1 / 55.4;
  made.workers = threads - 1;
  return made;
}

bool pays(const Costs& of, bool digests = false) { return speculation_outlook(of, digests).pays(); }
bool pays_if_waited(const Costs& of, bool digests = false) {
  return speculation_outlook(of, digests).pays_if_waited();
}

TEST(SpeculationOutlook, AFastEngineLeavesNothingToGain) {
  for (const uint32_t threads : {2, 4, 8, 16}) {
    EXPECT_FALSE(pays(costs(11.36, 18.0, threads))) << "h100-tdx, " << threads << " threads";
    EXPECT_FALSE(pays(costs(6.8, 10.7, threads))) << "h100-nvl-tdx, " << threads << " threads";
  }
}

TEST(SpeculationOutlook, ASlowOnePaysUntilTheLinkIsTheBound) {
  for (const uint32_t threads : {2, 4, 8}) EXPECT_TRUE(pays(costs(3.4, 10.7, threads))) << threads;
  EXPECT_FALSE(pays(costs(3.4, 10.7, 32)));
}

TEST(SpeculationOutlook, WhoWaitsGainsWhereThroughputDoesNot) {
  for (const uint32_t threads : {2, 4, 8}) {
    EXPECT_TRUE(pays_if_waited(costs(11.36, 18.0, threads))) << "h100-tdx, " << threads;
    EXPECT_TRUE(pays_if_waited(costs(6.8, 10.7, threads))) << "h100-nvl-tdx, " << threads;
  }
  EXPECT_FALSE(pays_if_waited(costs(11.36, 18.0, 32))) << "all of them seal it in no time";
  EXPECT_FALSE(pays_if_waited(costs(11.36, 18.0, 4), true)) << "a digest takes longer";
}

TEST(SpeculationOutlook, ADigestInEveryRequestEatsTheGain) {
  Costs slow = costs(3.4, 10.7, 4);
  slow.digest_ns_per_byte = slow.seal_ns_per_byte + slow.copy_ns_per_byte;
  EXPECT_TRUE(pays(slow));
  EXPECT_FALSE(pays(slow, true));
}

RC_GTEST_PROP(SpeculationOutlook, ASlowerEngineNeverPaysLessAndNobodyBeatsTheLink, ()) {
  const double copy = *rc::gen::inRange(20, 400) / 10.0;
  const double seal = *rc::gen::inRange(5, 400) / 10.0;
  const uint32_t threads = *rc::gen::inRange<uint32_t>(2, 64);
  const auto slow = speculation_outlook(costs(seal / 2, copy, threads), false);
  const auto fast = speculation_outlook(costs(seal, copy, threads), false);
  RC_ASSERT(slow.sealed_now >= fast.sealed_now);
  RC_ASSERT(slow.from_slot == fast.from_slot);
  RC_ASSERT(slow.pays() || !fast.pays());
  RC_ASSERT(std::min(fast.sealed_now, fast.from_slot) >= costs(seal, copy, threads).link(1_MiB));
  RC_ASSERT(slow.waited_now >= fast.waited_now);
  RC_ASSERT(slow.pays_if_waited() || !fast.pays_if_waited());
  RC_ASSERT(fast.pays_if_waited() || !fast.pays());
}

}  // namespace
}  // namespace sealane
