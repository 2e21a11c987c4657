// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a program under the transparent runtime see what each scenario file says it must see,
// whatever the runtime guesses, and does it guess where it should? Every file under every policy.

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/text.h"
#include "scenario/files.h"
#include "scenario/live_target.h"

namespace sealane::test {
namespace {

using Live = std::tuple<std::string, std::string>;  // file, policy

class LiveScenarioFile : public testing::TestWithParam<Live> {};

TEST_P(LiveScenarioFile, UnderTheRuntime) {
  const auto& [file, policy] = GetParam();
  const auto scenario = load_scenario(file);
  ASSERT_TRUE(scenario) << scenario.error().message;
  for (const std::string& failure : run_patiently(*scenario, policy)) {
    ADD_FAILURE() << scenario->title << "\n" << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenario, LiveScenarioFile,
                         testing::Combine(testing::ValuesIn(scenario_files()),
                                          testing::Values("parallel", "speculate")),
                         [](const testing::TestParamInfo<Live>& tested) {
                           return concat(std::get<1>(tested.param), "_",
                                         stem_of(std::get<0>(tested.param)));
                         });

Result<Scenario> scenario_of(const std::string& text) {
  return parse_scenario("# A test.\n" + text, "test.txt");
}

// The judge itself: an expectation that cannot come true fails, an attack is an error.
TEST(LiveTargetTest, CountsWhatTheRuntimeDid) {
  const std::string loop =
      "repeat 8\ncopy h2d w0 1M\nkernel 4ms\nsync\ncopy h2d w1 1M\nkernel 4ms\nsync\nend\n";
  const auto possible = scenario_of(loop + "expect live hit at least 1\n");
  ASSERT_TRUE(possible) << possible.error().message;
  for (const std::string& failure : run_patiently(*possible, "speculate")) ADD_FAILURE() << failure;
  const auto impossible = scenario_of(loop + "expect live hit at least 1000\n");
  ASSERT_TRUE(impossible) << impossible.error().message;
  LiveTarget live("speculate");
  const auto failures = run_scenario(*impossible, live);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].find("expected hit at least 1000, saw "), std::string::npos) << failures[0];
}

TEST(LiveTargetTest, SaysWhenACallFails) {
  const auto scenario = scenario_of("copy h2d w0 4M\nbus flip\ncopy h2d w0\nsync\nexpect ok\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  LiveTarget live("speculate");
  const auto failures = run_scenario(*scenario, live);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].find("CUDA_ERROR_ECC_UNCORRECTABLE"), std::string::npos) << failures[0];
}

}  // namespace
}  // namespace sealane::test
