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

class BenchTamper : public testing::TestWithParam<std::string> {};

// The receiver refuses; the sender may have its own, right, result by then, and then cannot go on.
TEST_P(BenchTamper, IsNoticedAtTheDefaultsByWhoeverDependsOnIt) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const ProgramResult result = run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(result.out.starts_with("# " + GetParam() + ": one bit")) << result.out;
    EXPECT_EQ(result.out.find("NOTICED NOTHING"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("rank 0: "), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("rank 1: "), std::string::npos) << result.out;
  }
}

TEST_P(BenchTamper, IsNoticedInLargeOnesAmongThree) {
  const ProgramResult result =
      run_program({SEALANE_PROGRAM, "bench", GetParam(), "--tamper", "-b", "4M", "--ranks", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("rank 2: "), std::string::npos) << result.out;
}

INSTANTIATE_TEST_SUITE_P(Cli, BenchTamper,
                         testing::Values("allreduce", "reduce_scatter", "all_gather", "broadcast"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace sealane::test
