// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/outlook.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sealane {
namespace {

constexpr double kLinkNsPerByte = 1 / 55.4;

Costs costs(double seal_gb_per_s, double copy_gb_per_s, uint32_t threads) {
  Costs made;
  made.seal_ns_per_byte = 1 / seal_gb_per_s;
  made.copy_ns_per_byte = 1 / copy_gb_per_s;
  made.workers = threads - 1;
  return made;
}

bool pays(const Costs& of, bool digests = false) {
  return speculation_outlook(of, digests, kLinkNsPerByte).pays();
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
  const auto slow = speculation_outlook(costs(seal / 2, copy, threads), false, kLinkNsPerByte);
  const auto fast = speculation_outlook(costs(seal, copy, threads), false, kLinkNsPerByte);
  RC_ASSERT(slow.sealed_now >= fast.sealed_now);
  RC_ASSERT(slow.from_slot == fast.from_slot);
  RC_ASSERT(slow.pays() || !fast.pays());
  RC_ASSERT(std::min(fast.sealed_now, fast.from_slot) >= Costs::bytes_time(kLinkNsPerByte, 1_MiB));
}

}  // namespace
}  // namespace sealane
