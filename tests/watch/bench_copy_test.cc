// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane bench copy` measure what it says, in the shape others read?

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

using nlohmann::json;

TEST(BenchCopy, MeasuresEveryPolicyOfAnExample) {
  const ProgramResult run =
      sealane({"bench", "copy"}, {"--examples", "decode_loop", "--rounds", "1", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json found = json::parse(run.out);
  EXPECT_EQ(found["label"], "MEASURED (emulated GPU)");
  EXPECT_EQ(found["rounds"], 1);
  std::vector<std::string> policies;
  for (const json& row : found["rows"]) {
    policies.push_back(row["policy"]);
    EXPECT_EQ(row["example"], "decode_loop");
    EXPECT_EQ(row["copies"], found["rows"][0]["copies"]) << row;
    EXPECT_EQ(row["bytes"], found["rows"][0]["bytes"]) << row;
    EXPECT_GT(row["total_s"], 0);
    EXPECT_GT(row["tokens_per_s"], 0);
    EXPECT_GE(row["blocked_s"], 0);
    EXPECT_EQ(row["hit_rate"], 0);  // its copies are small
    EXPECT_GE(row["overrun"], 0);
    EXPECT_EQ(row["in_time"], row["overrun"] <= 0.05) << row;
  }
  EXPECT_EQ(policies, (std::vector<std::string>{"off", "stock", "engine", "async", "parallel",
                                                "speculate", "sealane"}));
}

TEST(BenchCopy, IsSeveralRoundsWithTheirSpreadAndFitsATerminal) {
  const ProgramResult run =
      sealane({"bench", "copy"}, {"--examples", "decode_loop", "--policies", "off,sealane"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("MEASURED on the emulated GPU")) << run.out;
  EXPECT_NE(run.out.find("median of 3 rounds"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\ndecode_loop\npolicy "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\nsealane "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("spread"), std::string::npos) << run.out;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 92u) << line;
}

// At a dilation of 1 this machine would have to seal as fast as the modelled one.
TEST(BenchCopy, DoesNotCompareWhatDidNotKeepThePace) {
  const Scratch scratch;
  const ProgramResult run = sealane(
      {"bench", "copy"}, {"--examples", "mini_llm-flexgen", "--policies", "off,stock,parallel",
                          "--dilation", "1", "--rounds", "1", "--json", scratch.file("j")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  size_t late = 0;
  for (const json& row : read_json(scratch.file("j"))["rows"]) {
    EXPECT_EQ(row["in_time"], row["overrun"] <= 0.05) << row;
    late += row["in_time"] ? 0 : 1;
  }
  if (late == 0) GTEST_SKIP() << "this machine is as fast as the modelled one";
  EXPECT_NE(run.out.find(" !"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("did not keep the modelled pace"), std::string::npos) << run.out;
}

// Written by every run they would cost time, and each would have the next one's name.
TEST(BenchCopy, WritesNothingThatOtherProgramsAreToWrite) {
  const Scratch scratch;
  ProgramOptions told;
  for (const char* name : {"SEALANE_STATS", "SEALANE_METRICS", "SEALANE_TRACE", "SEALANE_RECORD",
                           "SEALANE_EMU_STATS"}) {
    told.environment.push_back(std::string(name) + "=" + scratch.file(name));
  }
  const ProgramResult run =
      run_program({SEALANE_PROGRAM, "bench", "copy", "--examples", "decode_loop", "--policies",
                   "off,sealane", "--rounds", "1"},
                  told);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.file("")));
}

TEST(BenchCopy, KnowsWhatWasMeant) {
  const ProgramResult run = sealane({"bench", "copy"}, {"--examples", "layer_swop"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("layer_swap"), std::string::npos) << run.err;
}

TEST(BenchCopy, SaysWhereExamplesAreMissing) {
  const ProgramResult run =
      sealane({"bench", "copy"}, {"--examples", "kv_swap", "--examples-dir", "/nowhere"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("/nowhere/kv_swap"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace sealane::test
