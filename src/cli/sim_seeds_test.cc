// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sim_seeds.h"

#include <gtest/gtest.h>

#include "platform/reader.h"

namespace sealane::cli {
namespace {

sim::SimOptions small_options() {
  sim::SimOptions options;
  options.last_seed = 40;
  options.ops = 150;
  options.mode = sim::Mode::serve;
  auto platform = find_platform("h100-nvl-tdx");
  if (!platform) ADD_FAILURE() << platform.error().message;
  if (platform) options.platform = *std::move(platform);
  options.platform_name = "h100-nvl-tdx";
  return options;
}

TEST(SimSeeds, TheNumberOfThreadsDoesNotShow) {
  const sim::SimOptions options = small_options();
  const auto one = run_seeds(options, 1);
  const auto three = run_seeds(options, 3);
  const auto serial = sim::run(options);
  ASSERT_TRUE(one && three && serial);
  EXPECT_EQ(serial->seeds, 41u);
  EXPECT_EQ(sim::to_json(*one), sim::to_json(*serial));
  EXPECT_EQ(sim::to_json(*three), sim::to_json(*serial));
  EXPECT_EQ(three->vs_stock_worst_seed, serial->vs_stock_worst_seed);
}

TEST(SimSeeds, TheFirstViolationIsTheOneReported) {
  sim::SimOptions options = small_options();
  options.last_seed = 200;
  options.break_rule = "rotation";
  const auto serial = sim::run(options);
  const auto three = run_seeds(options, 3);
  ASSERT_TRUE(serial && three);
  ASSERT_EQ(serial->violations.size(), 1u);
  ASSERT_EQ(three->violations.size(), 1u);
  EXPECT_EQ(three->violations[0].seed, serial->violations[0].seed);
  EXPECT_EQ(three->violations[0].replay, serial->violations[0].replay);
  EXPECT_EQ(three->seeds, serial->seeds);
}

TEST(SimSeeds, ProgressReachesTheEnd) {
  sim::SimOptions options = small_options();
  uint64_t calls = 0;
  uint64_t last = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_EQ(all, 41u);
    last = done;
    ++calls;
  };
  ASSERT_TRUE(run_seeds(options, 2));
  EXPECT_EQ(calls, 41u);
  EXPECT_EQ(last, 41u);
}

}  // namespace
}  // namespace sealane::cli
