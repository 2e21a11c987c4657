// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a program on the emulated GPU see what each scenario file says it must see? A GPU has no
// slots and no policy: bytes, order and errors are judged, the rest is the simulator's.

#include <gtest/gtest.h>

#include <string>

#include "scenario/emu_target.h"
#include "scenario/files.h"

namespace sealane::test {
namespace {

class EmuScenarioFile : public testing::TestWithParam<std::string> {};

TEST_P(EmuScenarioFile, OnTheEmulatedGpu) {
  const auto scenario = load_scenario(GetParam());
  ASSERT_TRUE(scenario) << scenario.error().message;
  EmuTarget gpu;
  for (const std::string& failure : run_scenario(*scenario, gpu)) {
    ADD_FAILURE() << scenario->title << "\n" << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenario, EmuScenarioFile, testing::ValuesIn(scenario_files()),
                         scenario_name);

Result<Scenario> scenario_of(const std::string& text) {
  return parse_scenario("# A test.\n" + text, "test.txt");
}

// The judge itself: a target that let tampering pass would be seen to.
TEST(EmuTargetTest, SaysWhenACallFails) {
  const auto scenario = scenario_of("copy h2d w0 4M\nbus flip\ncopy h2d w0\nsync\nexpect ok\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EmuTarget gpu;
  const auto failures = run_scenario(*scenario, gpu);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].find("CUDA_ERROR_ECC_UNCORRECTABLE"), std::string::npos) << failures[0];
}

TEST(EmuTargetTest, SaysWhenNoCallFails) {
  const auto scenario = scenario_of("copy h2d w0 4M\nsync\nexpect error\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EmuTarget gpu;
  EXPECT_EQ(run_scenario(*scenario, gpu).size(), 1u);
}

// With CC off nobody notices what happens on the bus, because there is none.
TEST(EmuTargetTest, FollowsThePolicyOff) {
  const auto scenario =
      scenario_of("policy off\ncopy h2d w0 4M\nbus flip\ncopy h2d w0\nsync\nexpect ok\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EmuTarget gpu;
  EXPECT_TRUE(run_scenario(*scenario, gpu).empty());
}

// A libcrypto that miscalculates stands for a runtime that answers with the wrong bytes.
TEST(EmuTargetTest, JudgesWhatComesBetween) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "its runtime wants to be the first library";
#endif
  const auto scenario = scenario_of("copy h2d w0 4M\nsync\nexpect ok\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EmuTarget gpu({"LD_PRELOAD=" WRONG_EVP});
  EXPECT_EQ(run_scenario(*scenario, gpu).size(), 1u);
}

}  // namespace
}  // namespace sealane::test
