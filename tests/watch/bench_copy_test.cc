// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane bench copy` measure what it says, in the shape others read?

#include <gtest/gtest.h>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

using nlohmann::json;

TEST(BenchCopy, MeasuresEveryPolicyOfAnExample) {
  const ProgramResult run =
      sealane({"bench", "copy"}, {"--examples", "decode_loop", "--seconds", "0", "--json", "-"});
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
  }
  EXPECT_EQ(policies, (std::vector<std::string>{"off", "stock", "engine", "async", "parallel",
                                                "pipellm", "sealane"}));
}

TEST(BenchCopy, PrintsEndToEndFirst) {
  const ProgramResult run = sealane({"bench", "copy"}, {"--examples", "decode_loop", "--policies",
                                                        "off,stock", "--seconds", "0"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("MEASURED on the emulated GPU")) << run.out;
  const size_t whole = run.out.find("End to end");
  const size_t blocked = run.out.find("Callers blocked");
  EXPECT_NE(whole, std::string::npos);
  EXPECT_LT(whole, blocked);
  EXPECT_NE(blocked, std::string::npos);
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
