// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane sim as its users see it.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

ProgramResult sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {SEALANE_PROGRAM, "sim"});
  return run_program(arguments);
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;
  std::string says;
};

class SimWrongUse : public testing::TestWithParam<WrongUse> {};

TEST_P(SimWrongUse, IsOneLineAndExitTwo) {
  const ProgramResult result = sim(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, SimWrongUse,
    testing::Values(
        WrongUse{"seed", {"--seed", "x"}, "--seed: 'x' is not a number"},
        WrongUse{"negative_seed", {"--seed", "-1"}, "--seed"},
        WrongUse{"seeds", {"--seeds", "5"}, "--seeds: '5' is not a range such as 0..100"},
        WrongUse{"seeds_backwards", {"--seeds", "9..3"}, "begins after its end"},
        WrongUse{"too_many_seeds", {"--seeds", "0..99999999999"}, "at most"},
        WrongUse{"seed_and_seeds", {"--seed", "1", "--seeds", "0..3"}, "--seeds"},
        WrongUse{"no_ops", {"--ops", "0"}, "--ops: 0 is not from 1"},
        WrongUse{"ops", {"--ops", "many"}, "--ops"},
        WrongUse{"mode", {"--mode", "swram"}, "did you mean 'swarm'?"},
        WrongUse{
            "policy", {"--policy", "fast"}, "there are: off, stock, parallel, pipellm, sealane"},
        WrongUse{"rule", {"--break", "stael"}, "did you mean 'stale'?"},
        WrongUse{"trace_and_ops", {"a.trace", "--ops", "9"}, "--ops"},
        WrongUse{"no_trace", {"none.trace"}, "none.trace"},
        WrongUse{"platform", {"--platform", "tpu"}, "unknown platform 'tpu'; there are: b200-t"},
        WrongUse{"platform_file", {"--platform", "./none.toml"}, "./none.toml: cannot be read"}),
    [](const auto& tested) { return tested.param.name; });

TEST(CliSim, KeepsItsPromises) {
  const ProgramResult result = sim({"--seeds", "0..9", "--ops", "300"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("SIMULATED: 10 seeds"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  violations            0\n"), std::string::npos) << result.out;
}

TEST(CliSim, JsonHasWhatProgramsNeed) {
  const ProgramResult result =
      sim({"--seeds", "0..3", "--ops", "200", "--mode", "serve", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  for (const char* key :
       {"seeds", "ops", "violations", "hit_rate", "voided", "padded", "relinquished",
        "slot_bytes_max", "vs_stock_worst", "vs_stock_worst_seed", "bulk_copies"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["seeds"], 4);
  EXPECT_EQ(json["violations"], 0);
}

TEST(CliSim, TheLastSeedsThereAreEnd) {
  const ProgramResult one = sim({"--seed", "18446744073709551615", "--ops", "20"});
  EXPECT_EQ(one.exit_code, 0) << one.signal << one.err;
  EXPECT_NE(one.out.find("SIMULATED: 1 seed of"), std::string::npos) << one.out;
  const ProgramResult some =
      sim({"--seeds", "18446744073709551550..18446744073709551615", "--ops", "20"});
  EXPECT_EQ(some.exit_code, 0) << some.signal << some.err;
  EXPECT_NE(some.out.find("SIMULATED: 66 seeds of"), std::string::npos) << some.out;
}

TEST(CliSim, OneSeedIsOneHistory) {
  const std::vector<std::string> words = {"--seed", "7", "--ops", "400", "--json", "-"};
  EXPECT_EQ(sim(words).out, sim(words).out);
}

// A broken rule is noticed, shown, and the printed command shows it again.
TEST(CliSim, AViolationCanBeReplayed) {
  const ProgramResult result = sim({"--seeds", "0..200", "--ops", "300", "--break", "order"});
  ASSERT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("Violation of 'order'"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("What led to it:"), std::string::npos) << result.out;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;

  const std::string before = "Replay: sealane sim ";
  const size_t replay = result.out.find(before);
  ASSERT_NE(replay, std::string::npos);
  const size_t begin = replay + before.size();
  std::istringstream words(result.out.substr(begin, result.out.find('\n', begin) - begin));
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  const ProgramResult again = sim(arguments);
  EXPECT_EQ(again.exit_code, 1);
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(again.out), first_line(result.out));
}

std::string trace() { return SEALANE_SOURCE_DIR "/tests/traces/peft.trace"; }

TEST(CliSim, PlaysARecordedProgram) {
  const ProgramResult result = sim({trace(), "--seeds", "0..3"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("SIMULATED: 4 seeds of " + trace()), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  violations            0\n"), std::string::npos) << result.out;
}

// What real engines do needs the rules: each that is turned off is noticed, and the command that
// shows it again names the recording.
TEST(CliSim, ARecordedProgramFindsBrokenRules) {
  for (const char* rule : {"order", "gate", "iv-once", "rotation"}) {
    const ProgramResult result = sim({trace(), "--seeds", "0..20", "--alone", "--break", rule});
    EXPECT_EQ(result.exit_code, 1) << rule;
    EXPECT_NE(result.out.find("Replay: sealane sim " + trace() + " --seed "), std::string::npos)
        << result.out;
  }
}

TEST(CliSim, SaysHowOftenARecordedProgramsCopiesAreForeseen) {
  const ProgramResult json = sim({"--hits", trace(), "--json", "-"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto found = nlohmann::json::parse(json.out)["traces"][0];
  EXPECT_EQ(found["trace"], "peft");
  EXPECT_GT(found["tournament"], 0.5);
  EXPECT_EQ(found["predictors"].size(), 8u);
  EXPECT_TRUE(found["predictors"].contains("repetition-by-size"));
  const ProgramResult text = sim({"--hits", trace()});
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

// Nobody should have to guess why a policy beats a machine without CC mode, nor read of it where
// none does.
TEST(CliSim, SaysWhyAPolicyTakesLessTimeThanOff) {
  const ProgramResult below = sim({"--steps", "--platform", "h100-tdx"});
  ASSERT_EQ(below.exit_code, 0) << below.err;
  EXPECT_NE(below.out.find("\nLess than off: control."), std::string::npos) << below.out;
  const ProgramResult above = sim({"--steps", "--platform", "b200-tdisp"});
  EXPECT_EQ(above.out.find("Less than off"), std::string::npos) << above.out;
}

TEST(CliSim, DoesNotWriteOverWhatItReads) {
  for (const char* table : {"--alone", "--hits"}) {
    const ProgramResult result = sim({table, trace(), "--json", trace()});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_TRUE(std::filesystem::file_size(trace()) > 1000);
  }
}

TEST(CliSim, AnUnwritableJsonPathIsToldBeforeAnyWork) {
  const std::string path = testing::TempDir() + "/no-such-directory/sim.json";
  const ProgramResult result = sim({"--seeds", "0..9000000", "--json", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sealane: cannot write ")) << result.err;
}

}  // namespace
}  // namespace sealane::test
