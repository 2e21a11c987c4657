// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what was measured on a machine that was busy with other things still a number?
#include "bench/seal_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sealane::bench {
namespace {

TEST(SealReport, AStarvedMeasurementIsSmallAndNotZero) {
  OpResult starved;
  starved.rate_gb_s.median = 0.000'412'3;
  starved.vs_memcpy.median = 0.000'041'234;
  starved.vs_openssl = starved.vs_memcpy;
  TrialResult trial{Where::dram, 65536, 1, {}, starved, {{"openssl", starved, starved}}};
  trial.memcpy_gb_s.median = 10.123'45;
  SealReport report;
  report.trials = {trial};
  report.in_use = "openssl";
  const nlohmann::json json = seal_json(report);
  EXPECT_EQ(json.at("memcpy_gb_s").at("dram"), 10.123);
  for (const nlohmann::json& row : json.at("results")) {
    EXPECT_EQ(row.at("gb_s"), 0.000'412);
    EXPECT_EQ(row.at("vs_memcpy"), 0.000'041'2);
    EXPECT_EQ(row.at("vs_openssl"), 0.000'041'2);
  }
  EXPECT_EQ(json.at("best").at("vs_memcpy"), 0.000'041'2);
}

TEST(SealReport, TheTableIsNoWiderForAWildSpread) {
  const auto width_with = [](double spread_pct) {
    OpResult result;
    result.rate_gb_s = {10, spread_pct};
    result.vs_memcpy.median = 0.5;
    TrialResult trial{Where::dram, 65536, 1, {}, result, {{"openssl", result, result}}};
    trial.memcpy_gb_s.median = 20;
    SealReport report;
    report.trials = {trial};
    report.in_use = "openssl";
    const std::string table = seal_table(report);
    const size_t head = table.find("\nop ");
    return table.find('\n', head + 1) - head;
  };
  EXPECT_EQ(width_with(7154), width_with(123));
  EXPECT_EQ(width_with(1e12), width_with(999.4));
}

}  // namespace
}  // namespace sealane::bench
