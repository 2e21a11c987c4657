// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `--tamper` of every collective show what happened to whom, at its defaults?

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

// What the library calls it.
std::string operation(const std::string& command) {
  return command == "allreduce" ? "all_reduce" : command;
}

// Lines that were broken are one again.
std::string unwrapped(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  for (size_t at; (at = text.find("  ")) != text.npos;) text.erase(at, 1);
  return text;
}

class BenchTamper : public testing::TestWithParam<std::string> {};

// The receiver refuses; the sender may have its own, right, result by then, and then cannot go on.
TEST_P(BenchTamper, IsNoticedAtTheDefaultsByWhoeverDependsOnIt) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const ProgramResult result = run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(result.out.starts_with("# " + GetParam() + ": one bit")) << result.out;
    EXPECT_EQ(result.out.find("NOTICED NOTHING"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("rank 0: "), std::string::npos) << result.out;
    // Of the collective that was asked for, and not of another one under its name.
    EXPECT_NE(unwrapped(result.out).find("rank 1: " + operation(GetParam()) + " 0: "),
              std::string::npos)
        << result.out;
  }
}

TEST_P(BenchTamper, IsNoticedInLargeOnesAmongThree) {
  const ProgramResult result =
      run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper", "-b", "4M", "--ranks", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("rank 2: "), std::string::npos) << result.out;
}

TEST_P(BenchTamper, OfOneRankIsRefusedAndALaunchersVariablesAreNotAsked) {
  const ProgramResult alone =
      run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper", "--ranks", "1"});
  EXPECT_EQ(alone.exit_code, 2) << alone.out << alone.err;
  EXPECT_NE(alone.err.find("--tamper needs two ranks"), std::string::npos) << alone.err;
  ProgramOptions launched;
  launched.environment = {"RANK=0", "WORLD_SIZE=1"};
  const ProgramResult within =
      run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper"}, launched);
  EXPECT_EQ(within.exit_code, 0) << within.out << within.err;
  EXPECT_NE(within.out.find("rank 1: "), std::string::npos) << within.out;
}

INSTANTIATE_TEST_SUITE_P(Cli, BenchTamper,
                         testing::Values("allreduce", "reduce_scatter", "all_gather", "broadcast"),
                         [](const auto& one) { return one.param; });

TEST(BenchCollective, AModeNamedTwiceIsMeasuredOnce) {
  const ProgramResult result = run_program({SEALANE_PROGRAM, "bench", "allreduce", "-b", "64", "-e",
                                            "64", "-n", "1", "--mode", "sealed,sealed"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const size_t first = result.out.find(" sealed ");
  ASSERT_NE(first, std::string::npos) << result.out;
  EXPECT_EQ(result.out.find(" sealed ", first + 1), std::string::npos) << result.out;
}

// Who sees a sealed one beside a plain one is told what of the difference is this CPU's.
TEST(BenchCollective, SaysWhatTheCpuLacksBesideWhatIsSealed) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "there is nothing wider to lack";
#endif
  for (const std::string hidden : {"-avx512", "-avx512,-vaes"}) {
    for (const bool sealed : {true, false}) {
      const ProgramResult result =
          run_program({SEALANE_PROGRAM, "bench", "allreduce", "-b", "64", "-e", "64", "-n", "1",
                       "--mode", sealed ? "sealed,plain" : "plain"},
                      {.environment = {"SEALANE_CPU=" + hidden}, .input = {}});
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.out.find("This CPU shows no ") != std::string::npos, sealed)
          << hidden << result.out;
    }
  }
}

}  // namespace
}  // namespace sealane::test
