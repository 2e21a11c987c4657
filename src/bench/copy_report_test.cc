// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is it said where what people get by default was slower than a part of it, and only there?
#include "bench/copy_report.h"

#include <gtest/gtest.h>

#include <map>

namespace sealane::bench {
namespace {

using Times = std::map<std::string, std::vector<double>>;  // ms of each round, by policy

std::string told(const Times& times, double overrun = 0) {
  static const CopyExample example = {.name = "some_example", .program = {}, .arguments = {}};
  CopyReport report;
  report.platform = "h100-tdx";
  for (const CopyPolicy& policy : copy_policies()) {
    const auto found = times.find(policy.name);
    if (found == times.end()) continue;
    CopyRow& row = report.rows.emplace_back(CopyRow{{&example, ""}, &policy, {}});
    for (const double ms : found->second) {
      CopyRun& run = row.runs.emplace_back();
      run.total_s = ms / 1e3;
      if (policy.name == "sealane") run.overrun = overrun;
    }
    report.rounds = row.runs.size();
  }
  return copy_tables(report);
}

bool is_told(const Times& times, double overrun = 0) {
  return told(times, overrun).find("sealane took") != std::string::npos;
}

TEST(CopyReport, SaysWhereTheDefaultWasSlowerThanAPartOfItAndWhyThatCanBe) {
  const std::string text = told({{"stock", {20, 20, 20}},
                                 {"async", {10.5, 10.5, 10.5}},
                                 {"parallel", {9.9, 10, 10.1}},
                                 {"sealane", {11.9, 12, 12.1}}});
  EXPECT_NE(text.find("\nsome_example: sealane took 1.20 of the time of parallel."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("takes time and cores"), std::string::npos) << text;
  EXPECT_TRUE(is_told({{"async", {10, 10, 10}}, {"sealane", {12, 12, 12}}}));
}

TEST(CopyReport, SaysNothingOfWhatMayBeChance) {
  EXPECT_FALSE(is_told({{"parallel", {10, 10, 10}}, {"sealane", {9, 9, 9}}}));
  EXPECT_FALSE(is_told({{"parallel", {8, 10, 12}}, {"sealane", {10, 11, 12}}}))
      << "within the spread";
  EXPECT_FALSE(is_told({{"parallel", {10}}, {"sealane", {12}}})) << "one round has none";
  EXPECT_FALSE(is_told({{"stock", {10, 10, 10}}, {"sealane", {12, 12, 12}}})) << "no part of it";
  EXPECT_FALSE(is_told({{"parallel", {10, 10, 10}}, {"sealane", {12, 12, 12}}}, 0.5))
      << "a time of this machine";
}

}  // namespace
}  // namespace sealane::bench
