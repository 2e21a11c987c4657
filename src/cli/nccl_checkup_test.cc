// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does `doctor --nccl` see when NCCL would send in the clear?

#include "cli/nccl_checkup.h"

#include <gtest/gtest.h>

#include <map>

namespace sealane::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Result<std::string> starts(const std::string& name) { return name + " starts"; }

Checkup judge(const Variables& variables, const std::optional<std::string>& log = std::nullopt,
              Result<std::string> (*start)(const std::string&) = starts) {
  return check_nccl(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      },
      start, log);
}

Variables all_set() {
  Variables variables = {{"SEALANE_KEY_FILE", "/etc/sealane.key"}};
  for (const NcclSetting& one : nccl_settings()) {
    variables[std::string(one.name)] = std::string(one.value);
  }
  return variables;
}

TEST(NcclCheckup, WhatEnvPrintsIsFoundInOrder) {
  const Checkup checkup = judge(all_set());
  EXPECT_EQ(checkup.count(Verdict::fail), 0U);
  EXPECT_EQ(checkup.count(Verdict::warn), 0U);
}

TEST(NcclCheckup, WithoutNcclNetAFailingPluginWouldMeanPlaintext) {
  for (const char* name : {"NCCL_NET", "NCCL_NET_PLUGIN", "SEALANE_KEY_FILE"}) {
    Variables variables = all_set();
    variables.erase(name);
    EXPECT_EQ(judge(variables).count(Verdict::fail), 1U) << name;
  }
}

TEST(NcclCheckup, APluginThatDoesNotStartFailsInItsOwnWords) {
  const Checkup checkup = judge(all_set(), std::nullopt, [](const std::string&) {
    return Result<std::string>(usage_error("the key is anybody's to read"));
  });
  ASSERT_EQ(checkup.count(Verdict::fail), 1U);
  EXPECT_EQ(checkup.findings.back().detail, "the key is anybody's to read");
}

TEST(NcclCheckup, APluginThatIsNowhereIsNotFound) {
  EXPECT_FALSE(start_nccl_plugin("no-such-plugin"));
  EXPECT_FALSE(start_nccl_plugin("/nowhere/libnccl-net-sealane.so"));
}

TEST(NcclCheckup, WaysRoundThePluginAreNamed) {
  for (const char* name : {"NCCL_GIN_ENABLE", "NCCL_RMA_DISABLE", "NCCL_MNNVL_ENABLE",
                           "NCCL_OOB_NET_ENABLE", "NCCL_IGNORE_NET_MISMATCH"}) {
    Variables variables = all_set();
    variables.erase(name);
    const Checkup checkup = judge(variables);
    EXPECT_EQ(checkup.count(Verdict::warn), 1U) << name;
  }
  Variables variables = all_set();
  variables["NCCL_COLLNET_ENABLE"] = "1";
  EXPECT_EQ(judge(variables).count(Verdict::warn), 1U);
}

TEST(NcclCheckup, ALogThatNamesAnotherNetworkFails) {
  const std::string good = "host:1:2 [0] NCCL INFO Using network Sealane\n";
  const std::string bad = "host:1:3 [1] NCCL INFO Using network Socket\n";
  EXPECT_EQ(judge(all_set(), good).count(Verdict::fail), 0U);
  EXPECT_EQ(judge(all_set(), good + bad).count(Verdict::fail), 1U);
  EXPECT_EQ(judge(all_set(), "nothing here").count(Verdict::warn), 1U);
}

}  // namespace
}  // namespace sealane::cli
