// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `bench nccl` say what it measured, in lines that fit, and does it end without a trace?

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "support/run_program.h"

namespace sealane::test {
namespace {

ProgramResult bench_nccl(std::vector<std::string> words) {
  words.insert(words.begin(), {SEALANE_PROGRAM, "bench", "nccl", "--plugin", SEALANE_NCCL_PLUGIN});
  return run_program(words);
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
  return longest;
}

const std::vector<std::string> kShort = {"-b", "64K", "-e", "64K", "-n", "2", "--rounds", "1"};

TEST(BenchNccl, MeasuresInLinesThatFit) {
  for (const char* pattern : {"allreduce", "tree", "latency"}) {
    auto words = kShort;
    words.insert(words.end(), {"--pattern", pattern});
    const ProgramResult result = bench_nccl(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with("MEASURED on this machine: ")) << result.out;
    EXPECT_NE(result.out.find("\nsealane  65536 "), std::string::npos) << result.out;
    EXPECT_LE(longest_line(result.out), 80u) << result.out;
  }
}

// Ranks with one child, with two and with none; a last slice that is shorter. Wrong sums are an
// error.
TEST(BenchNccl, TreesAndRingsOfSeveralRanksSumUp) {
  for (const char* pattern : {"allreduce", "tree"}) {
    for (const char* ranks : {"3", "4"}) {
      const ProgramResult result = bench_nccl({"--pattern", pattern, "--ranks", ranks, "-b",
                                               "2500K", "-e", "2500K", "-n", "2", "--rounds", "1"});
      EXPECT_EQ(result.exit_code, 0) << pattern << " " << ranks << ": " << result.out << result.err;
    }
  }
}

TEST(BenchNccl, ChecksInLinesThatFitAndSaysWhenADeathIsNoticed) {
  const ProgramResult result = bench_nccl({"--check", "--messages", "50"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out.find("FAIL"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("noticed after"), std::string::npos) << result.out;
  EXPECT_LE(longest_line(result.out), 80u) << result.out;
}

// With root, between namespaces, which are gone afterwards; else it says what is missing.
TEST(BenchNccl, HostsAreNamespacesOrSkippedWithAWord) {
  auto words = kShort;
  words.insert(words.end(), {"--hosts", "--gbit-per-s", "2.5"});
  const ProgramResult result = bench_nccl(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  if (result.out.starts_with("skipped: --hosts ")) return;
  EXPECT_NE(result.out.find("in network namespaces of 2.5 Gbit/s"), std::string::npos)
      << result.out;
  EXPECT_FALSE(std::filesystem::exists("/sys/class/net/port0"));
}

// Where the kernel has netem; else it says that.
TEST(BenchNccl, HostsMayBeSomeWayApart) {
  auto words = kShort;
  words.insert(words.end(), {"--hosts", "--delay-us", "50"});
  const ProgramResult result = bench_nccl(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  if (result.out.starts_with("skipped: --hosts ")) return;
  if (result.out.starts_with("skipped: --delay-us needs a kernel with netem")) return;
  EXPECT_NE(result.out.find(", 50 us apart"), std::string::npos) << result.out;
}

TEST(BenchNccl, WrongUseIsExplained) {
  for (const auto& [words, said] :
       {std::pair<std::vector<std::string>, const char*>{{"--hosts", "--check"},
                                                         "--check excludes --hosts"},
        {{"--ranks", "1"}, "--ranks: '1' is not a number from 2 to 8"},
        {{"--pattern", "star"}, "unknown 'star'; there are: allreduce, tree, latency"},
        {{"--delay-us", "5"}, "--delay-us requires --hosts"},
        {{"-w", "4294967295", "-n", "1"}, "-w: '4294967295' is not a number from 0 to 1000000"},
        {{"--abi", "7"}, "--abi: '7' is not a number from 8 to 12"},
        {{"-b", "2M", "-e", "1M"}, "-e is smaller"}}) {
    const ProgramResult result = bench_nccl(words);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace sealane::test
