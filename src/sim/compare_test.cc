// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What docs/prediction.md and docs/pipeline.md promise about patterns, end to end and with slack.

#include "sim/compare.h"

#include <gtest/gtest.h>

#include <map>

#include "platform/reader.h"

namespace sealane::sim {
namespace {

using workload::Pattern;

Platform platform() {
  auto found = load_platform(SEALANE_PLATFORM_FILES "/h100-nvl-tdx.toml");
  EXPECT_TRUE(found.ok());
  return *found;
}

TEST(Compare, HitRatesFromTheThirdPeriodOn) {
  const std::map<Pattern, double> promised = {
      {Pattern::repetition, 0.99},  {Pattern::forward_backward, 0.98},
      {Pattern::interleaved, 0.95}, {Pattern::fifo, 0.97},
      {Pattern::lifo, 0.97},        {Pattern::control, 0.97},
      {Pattern::sequential, 0.97}};
  for (const HitRow& row : compare_hits(platform())) {
    const auto found = promised.find(row.pattern);
    const std::string name(workload::to_string(row.pattern));
    EXPECT_GE(row.sealane.hit_rate, found == promised.end() ? 0 : found->second) << name;
    EXPECT_EQ(row.sealane.silent, row.pattern == Pattern::random) << name;
    EXPECT_GT(row.sealane.copies, 0U);
  }
}

// Each step may cost a little where it brings nothing; together they pay, and speculation pays
// where the host waits for the device while the workers could seal.
TEST(Compare, EveryStepPaysSomewhereAndNoneCostsMuch) {
  const auto rows = compare_steps(platform());
  for (const StepRow& row : rows) {
    const std::string name(workload::to_string(row.pattern));
    for (size_t i = 1; i + 1 < kPolicySteps; ++i) {
      EXPECT_LE(row.elapsed[i].count(), row.elapsed[i - 1].count() * 1.02)
          << name << ' ' << policy_steps()[i].name;
    }
  }
  for (const StepRow& row : rows) {
    const bool foreseeable = row.pattern != Pattern::random && row.pattern != Pattern::rewriting;
    const auto [stock, engine, async, parallel, speculation, off] = row.elapsed;
    if (!foreseeable) continue;
    EXPECT_LE(speculation.count(), parallel.count() * (row.lockstep ? 0.85 : 1.0))
        << workload::to_string(row.pattern);
  }
}

TEST(Compare, JsonNamesEveryStep) {
  const std::vector<StepRow> one(1);
  EXPECT_EQ(to_json("p", std::span<const StepRow>(one)),
            R"({"simulated":true,"platform":"p","steps":[{"pattern":"repetition","lockstep":false,)"
            R"("stock_ms":0.000,"engine_ms":0.000,"async_ms":0.000,"parallel_ms":0.000,)"
            R"("speculation_ms":0.000,"off_ms":0.000}]})");
}

}  // namespace
}  // namespace sealane::sim
