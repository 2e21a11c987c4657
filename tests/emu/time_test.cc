// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the emulated GPU charge what its model says? Lower bounds hold on any machine; upper bounds
// here are of the model's own books, far from what a slow machine could reach. How close it comes
// is measured, not tested: emu_rates, docs/emulator.md.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "run_probe.h"

namespace sealane::test {
namespace {

using nlohmann::json;
using Environment = std::vector<std::string>;

constexpr uint64_t kCopied = 8 << 20;

// AEAD at so many ns per byte, and everything else next to nothing.
Environment slow_aead(uint64_t ns_per_byte) {
  const std::string rate = std::to_string(1.0 / static_cast<double>(ns_per_byte)) + " ";
  std::string words = "SEALANE_EMU_MODEL=";
  for (const std::string way : {"to_device", "to_host"}) {
    words += way + ".cc.stock_aead_gb_per_s=" + rate + way + ".cc.stock_aead_cold_gb_per_s=" + rate;
  }
  return {words, "SEALANE_EMU_PACING=model", "SEALANE_EMU_DILATION=1"};
}

TEST(EmulatedTime, ModelledWorkOfTheHostTakesItsTime) {
  const ProgramResult result =
      probe("pace", {"SEALANE_EMU_PACING=model", "SEALANE_EMU_DILATION=3",
                     "SEALANE_EMU_MODEL=to_device.cc.stock_aead_gb_per_s=0.5 "
                     "host.fast_aead_gb_per_s=1 host.memcpy_gb_per_s=2 guard.digest_gb_per_s=4"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(EmulatedTime, EventsAndAllocationsAreChargedInConfidentialMode) {
  const Environment slow = {"SEALANE_EMU_PACING=model", "SEALANE_EMU_DILATION=2",
                            "SEALANE_EMU_MODEL=gpu.call_cc_us=2000"};
  const ProgramResult result = probe("calls", slow);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(EmulatedTime, TheDriverIsChargedForItsAead) {
  ProgramResult result;
  const json truth = truth_of("copy", slow_aead(100), result);  // 0.84 s of one core
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(truth["answered_bytes"], 0);
  for (const char* way : {"to_device", "to_host"}) {
    EXPECT_GE(truth[way]["blocked_device_ns"], kCopied * 100);
  }
}

TEST(EmulatedTime, WhatSomebodyElseAnsweredIsNotCharged) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "its runtime wants to be the first library";
#endif
  constexpr uint64_t kNsPerByte = 2000;  // 17 s, which no machine is too busy to tell from nothing
  for (const std::string thread : {"off", "on"}) {
    Environment environment = slow_aead(kNsPerByte);
    environment.push_back("SEALANE_EMU_SEAL_THREAD=" + thread);
    environment.push_back(std::string("LD_PRELOAD=") + ANSWERING_CRYPTO);
    ProgramResult result;
    const json truth = truth_of("copy", environment, result);
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(truth["answered_bytes"], 2 * kCopied);
    for (const char* way : {"to_device", "to_host"}) {
      EXPECT_LT(truth[way]["blocked_device_ns"], kCopied * kNsPerByte / 2);
    }
  }
}

// 300 ms of a kernel's real time are none of device time.
TEST(EmulatedTime, StandsStillWhileAKernelRunsAsAHostFunction) {
  ProgramResult result;
  const json truth =
      truth_of("slow_kernel", {"SEALANE_EMU_PACING=model", "SEALANE_EMU_DILATION=4"}, result);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const auto real_ns = truth["real_ns"].get<uint64_t>();
  EXPECT_LE(4 * truth["device_ns"].get<uint64_t>() + 300'000'000, real_ns + 1'000'000);
}

TEST(EmulatedTime, IsRealTimeWhenNothingIsPaced) {
  ProgramResult result;
  const json truth = truth_of("slow_kernel", {}, result);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(truth["dilation_permille"], 1000);
  EXPECT_GE(truth["device_ns"], 300'000'000);
}

}  // namespace
}  // namespace sealane::test
