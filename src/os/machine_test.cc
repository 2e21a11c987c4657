// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/machine.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

using Words = std::vector<std::string>;

TEST(Machine, ReadsTheCpu) {
  const Cpu cpu = parse_cpuinfo(
      "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Some CPU @ 2.1GHz\n"
      "flags\t\t: fpu aes avx2 avx512f vaes vpclmulqdq\n\nprocessor\t: 1\nmodel name\t: Other\n");
  EXPECT_EQ(cpu.model, "Some CPU @ 2.1GHz");
  EXPECT_EQ(cpu.features, (Words{"aes", "avx2", "avx512f", "vaes", "vpclmulqdq"}));
}

TEST(Machine, ReadsAnArmCpuAndNothingAtAll) {
  const Cpu arm = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd aes pmull\n");
  EXPECT_EQ(arm.model, "");
  EXPECT_EQ(arm.features, (Words{"aes", "pmull"}));
  EXPECT_TRUE(parse_cpuinfo("").features.empty());
  EXPECT_TRUE(parse_cpuinfo("flags\t:").features.empty());
}

TEST(Machine, SwapIsALineBelowTheHeading) {
  EXPECT_FALSE(has_swap(""));
  EXPECT_FALSE(has_swap("Filename\tType\tSize\tUsed\tPriority\n"));
  EXPECT_TRUE(has_swap("Filename\tType\tSize\tUsed\tPriority\n/dev/vdb partition 1 0 -2\n"));
}

TEST(Machine, TheRightToLockIsBit14) {
  EXPECT_TRUE(may_lock_any("Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000004000\n"));
  EXPECT_FALSE(may_lock_any("CapPrm:\t0000000000004000\nCapEff:\t000001ffffffbfff\n"));
  EXPECT_FALSE(may_lock_any(""));
}

TEST(Machine, CountsLists) {
  EXPECT_EQ(count_listed("0\n"), 1u);
  EXPECT_EQ(count_listed("0-3,8\n"), 5u);
  EXPECT_EQ(count_listed("0,2,4-5"), 4u);
  EXPECT_EQ(count_listed(""), 0u);
  EXPECT_EQ(count_listed("\n"), 0u);
}

TEST(Machine, ThisOneHasACore) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.cores, 1u);
  EXPECT_GE(machine.numa_nodes, 1u);
}

}  // namespace
}  // namespace sealane
