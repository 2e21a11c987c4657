// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the simulator see what each scenario file says must be seen?

#include "scenario/scenario.h"

#include <gtest/gtest.h>

#include <string>

#include "scenario/files.h"
#include "scenario/sim_target.h"

namespace sealane::test {
namespace {

class ScenarioFile : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, OnTheSimulator) {
  const auto scenario = load_scenario(GetParam());
  ASSERT_TRUE(scenario) << scenario.error().message;
  SimTarget simulator;
  for (const std::string& failure : run_scenario(*scenario, simulator)) {
    ADD_FAILURE() << scenario->title << "\n" << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenario, ScenarioFile, testing::ValuesIn(scenario_files()),
                         scenario_name);

TEST(ScenarioFiles, ThereAreAtLeastTwenty) { EXPECT_GE(scenario_files().size(), 20u); }

}  // namespace
}  // namespace sealane::test
