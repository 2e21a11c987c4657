// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane bench engines` measure what it says, in the shape others read? The interpreter is a
// stand-in here, so that this needs no engines: tests/engines runs the real ones.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

using nlohmann::json;

// Answers as examples/engines/run.py does; copies as an example of ours does, which tells its own
// figures. `answer` is a line of shell that sets $hash and, if it likes, $total.
std::string stand_in(const Scratch& scratch, const std::string& answer) {
  const std::string file = scratch.file("python");
  std::ofstream out(file);
  out << "#!/bin/sh\n"
         "for word in \"$@\"; do last=$word; done\n"  // --json FILE
      << answer << "\n"
      << example("decode_loop") << " --steps 8 --json \"$last.own\" || exit 1\n"
      << "echo "
         "'{\"total_s\":'${total:-0.01}',\"tokens_per_s\":7,\"hash\":\"'$hash'\",\"about\":"
         "\"Engine "
         "1.0\"}' "
         ">\"$last\"\n";
  out.close();
  chmod(file.c_str(), 0700);
  return file;
}

TEST(BenchEngines, MeasuresEveryPolicyAndCountsCopiesBySize) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"bench", "engines"}, {"--engines", "flexgen", "--quick", "--python",
                                     stand_in(scratch, "hash=same"), "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json found = json::parse(run.out);
  std::vector<std::string> policies;
  for (const json& row : found["rows"]) {
    policies.push_back(row["policy"]);
    EXPECT_EQ(row["engine"], "flexgen");
    EXPECT_EQ(row["versions"], "Engine 1.0");
    EXPECT_GT(row["copies"], 0);
    EXPECT_GE(row["waits_s"], 0);
  }
  EXPECT_EQ(policies,
            (std::vector<std::string>{"off", "stock", "parallel", "sealane", "speculate"}));
  uint64_t copies = 0;
  for (const json& row : found["sizes"]) copies += row["copies"].get<uint64_t>();
  EXPECT_EQ(found["sizes"].size(), 10u);
  EXPECT_GT(copies, 0u);
}

TEST(BenchEngines, FitsATerminal) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"bench", "engines"}, {"--engines", "peft", "--policies", "off,stock,sealane",
                                     "--rounds", "1", "--python", stand_in(scratch, "hash=same")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("\npeft: Engine 1.0\npolicy "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\ncopies of "), std::string::npos) << run.out;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(BenchEngines, SaysWhyAPolicyIsFasterThanOff) {
  const auto tables = [](const char* ours) {
    const Scratch scratch;
    const std::string totals =
        "hash=same; case $SEALANE_ENABLE/$SEALANE_EMU_CC in none/off) total=0.02;; "
        "none/on) total=0.03;; *) total=" +
        std::string(ours) + ";; esac";
    return sealane({"bench", "engines"}, {"--engines", "peft", "--policies", "off,stock,sealane",
                                          "--quick", "--python", stand_in(scratch, totals)})
        .out;
  };
  const std::string faster = tables("0.01");
  EXPECT_NE(faster.find(" -1.00 "), std::string::npos) << faster;
  EXPECT_NE(faster.find("It is no gain of CC mode"), std::string::npos) << faster;
  const std::string slower = tables("0.022");
  EXPECT_NE(slower.find(" 0.20 "), std::string::npos) << slower;
  EXPECT_EQ(slower.find("It is no gain of CC mode"), std::string::npos) << slower;
}

// The stand-in sees what the runtime will be told.
TEST(BenchEngines, SaysWithHowManyWorkers) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"bench", "engines"},
              {"--engines", "peft", "--policies", "sealane", "--quick", "--workers", "3", "--json",
               "-", "--python", stand_in(scratch, "hash=${SEALANE_WORKERS:-none}")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json row = json::parse(run.out)["rows"][0];
  EXPECT_EQ(row["workers"], "3");
  EXPECT_EQ(row["answer"], "3");
}

TEST(BenchEngines, OtherTokensAreAnError) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"bench", "engines"}, {"--engines", "flexgen", "--policies", "off,stock", "--quick",
                                     "--python", stand_in(scratch, "hash=$SEALANE_EMU_CC")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("computed something else"), std::string::npos) << run.err;
}

TEST(BenchEngines, KeepsWhatItRecorded) {
  const Scratch scratch;
  const ProgramResult run = sealane(
      {"bench", "engines"}, {"--engines", "flexgen", "--policies", "off", "--quick", "--traces",
                             scratch.file(""), "--python", stand_in(scratch, "hash=same")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::ifstream trace(scratch.file("flexgen.trace"));
  std::string first;
  std::getline(trace, first);
  EXPECT_EQ(first, "sealane-trace 1");
}

TEST(BenchEngines, SaysWhatIsMissing) {
  const ProgramResult engine =
      sealane({"bench", "engines"}, {"--engines", "flexgem", "--python", "/bin/true"});
  EXPECT_EQ(engine.exit_code, 2);
  EXPECT_NE(engine.err.find("flexgen"), std::string::npos) << engine.err;
  const ProgramResult python = sealane({"bench", "engines"}, {"--python", "/nowhere/python"});
  EXPECT_EQ(python.exit_code, 2);
  EXPECT_NE(python.err.find("/nowhere/python"), std::string::npos) << python.err;
}

}  // namespace
}  // namespace sealane::test
