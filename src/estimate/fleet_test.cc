// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do more cores for each GPU lose less, and is what is called enough enough?

#include "estimate/fleet.h"

#include <gtest/gtest.h>

#include "estimate/price.h"
#include "platform/reader.h"

namespace sealane::estimate {
namespace {

Result<Fleet> fleet_of(const char* platform, double goal_pct, uint32_t draws = 0) {
  ServingPlan plan;
  plan.draws = draws;
  plan.platform = *find_platform(platform);
  plan.policies = {*find_serving_policy("sealane")};
  plan.workers = 16;
  workload::ServingOptions options;
  options.steps = 1;
  options.batch = 4;
  return estimate_fleet(
      plan,
      [&](const Platform& where, const Draw&) {
        return *workload::make_serving(*workload::find_serving("flexgen"),
                                       *workload::find_model("opt-13b"), roofline_of(where),
                                       options);
      },
      goal_pct);
}

TEST(Fleet, MoreCoresLoseLessAndEnoughIsTheFewest) {
  const auto fleet = fleet_of("h100-tdx", 40);
  ASSERT_TRUE(fleet) << fleet.error().message;
  ASSERT_GT(fleet->points.size(), 5u);
  EXPECT_EQ(fleet->points.front().cores_per_gpu, 1u);
  EXPECT_EQ(fleet->points.front().gpus, find_platform("h100-tdx")->host.cores);
  EXPECT_GT(fleet->points.front().rows.back().loss_pct, fleet->points.back().rows.back().loss_pct);
  ASSERT_TRUE(fleet->enough);
  for (const FleetPoint& point : fleet->points) {
    const double loss = point.rows.back().loss_pct;
    if (point.cores_per_gpu >= *fleet->enough) {
      EXPECT_LE(loss, 40) << point.cores_per_gpu;
    } else if (2 * point.cores_per_gpu > *fleet->enough) {
      EXPECT_GT(loss, 40) << point.cores_per_gpu;
    }
  }
  EXPECT_FALSE(fleet_of("h100-tdx", -1)->enough) << "nobody is faster than without CC";
}

// What may turn out better or worse needs fewer cores or more.
TEST(Fleet, TheFewestCoresHaveAnInterval) {
  const auto fleet = fleet_of("h100-tdx", 40, kDraws);
  ASSERT_TRUE(fleet) << fleet.error().message;
  for (const FleetPoint& point : fleet->points) {
    for (const ServingRow& row : point.rows) {
      EXPECT_TRUE(row.policy == "off" || row.loss_range.known()) << point.cores_per_gpu;
    }
  }
  ASSERT_TRUE(fleet->enough && fleet->enough_at_best);
  EXPECT_LE(*fleet->enough_at_best, *fleet->enough);
  EXPECT_GE(fleet->enough_at_worst.value_or(1'000), *fleet->enough);
  EXPECT_LT(*fleet->enough_at_best, fleet->enough_at_worst.value_or(1'000));
  EXPECT_FALSE(fleet_of("h100-tdx", 40)->enough_at_best) << "nothing was drawn";
}

TEST(Fleet, AShareOfTheHostIsAShareOfItsMemory) {
  const Platform whole = *find_platform("h100-tdx");
  const Platform quarter = share_of_host(whole, static_cast<uint32_t>(whole.host.cores / 4));
  EXPECT_EQ(quarter.host.cores, whole.host.cores / 4);
  EXPECT_DOUBLE_EQ(quarter.host.memory_gb_per_s, whole.host.memory_gb_per_s / 4);
}

TEST(Prices, AnHourOfEachCostsWhatItCosts) {
  const Prices prices{.gpu_per_hour = 4, .core_per_hour = 0.05};
  EXPECT_TRUE(prices.given());
  EXPECT_FALSE(Prices{}.given());
  EXPECT_DOUBLE_EQ(prices.of(3600, 1, 0), 4);
  EXPECT_DOUBLE_EQ(prices.of(3600, 0, 8), 0.4);
  EXPECT_DOUBLE_EQ(prices.of(1800, 2, 8), 4.2);
}

}  // namespace
}  // namespace sealane::estimate
