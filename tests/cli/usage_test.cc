// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every subcommand owes its user: help that helps, and errors of one clear line.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

ProgramResult sealane(std::vector<std::string> arguments, const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin(), SEALANE_PROGRAM);
  return run_program(arguments, options);
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;
  std::string says;
};

class WrongUseTest : public testing::TestWithParam<WrongUse> {};

TEST_P(WrongUseTest, IsOneLineAndExitTwo) {
  const ProgramResult result = sealane(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sealane: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.ends_with("\n"));
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, WrongUseTest,
    testing::Values(
        WrongUse{"nothing", {}, "sealane --help"},
        WrongUse{
            "misspelt_command", {"docter"}, "unknown command 'docter'; did you mean 'doctor'?"},
        WrongUse{"strange_command", {"xyzzy"}, "there are: doctor, bench"},
        WrongUse{"empty_command", {""}, "unknown command ''"},
        WrongUse{"unknown_flag", {"--frob"}, "unknown option '--frob'"},
        WrongUse{"misspelt_flag", {"--verison"}, "did you mean '--version'?"},
        WrongUse{"flag_of_another",
                 {"doctor", "--frob"},
                 "unknown option '--frob' of 'sealane doctor'; there are: "},
        WrongUse{
            "flag_too_early", {"--json", "-", "doctor"}, "unknown option '--json' of 'sealane'"},
        WrongUse{"misspelt_flag_of_command", {"doctor", "--jsn=x"}, "did you mean '--json'?"},
        WrongUse{"value_missing", {"doctor", "--json"}, "--json"},
        WrongUse{"word_too_many", {"doctor", "now"}, "unexpected argument 'now'"},
        WrongUse{"newline_in_word", {"doctor\nnow"}, "unknown command"},
        WrongUse{"newline_in_flag", {"doctor", "--fr\nob"}, "unknown option"},
        WrongUse{"two_commands", {"doctor", "bench"}, "unexpected argument 'bench'"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Cli, HelpShowsCommandsAndExamples) {
  const ProgramResult result = sealane({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("Examples:"), std::string::npos);
  EXPECT_NE(result.out.find("sealane doctor"), std::string::npos);
  EXPECT_NE(result.out.find("bench"), std::string::npos);
}

TEST(Cli, EverySubcommandHasHelp) {
  const ProgramResult result = sealane({"doctor", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("--json"), std::string::npos);
}

TEST(Cli, VersionIsOneLine) {
  const ProgramResult result = sealane({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("sealane ")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
}

TEST(Cli, AnUnknownVariableWarnsAndChangesNothing) {
  const ProgramResult result =
      sealane({"doctor", "--json", "-"}, {.environment = {"SEALANE_AEDA=openssl"}, .input = {}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err,
            "sealane: warning: nothing reads the variable SEALANE_AEDA; did you mean "
            "'SEALANE_AEAD'?\n");
  EXPECT_TRUE(result.out.starts_with("{"));
}

TEST(Cli, AnUnwritableJsonPathIsToldBeforeAnyWork) {
  const std::string path = testing::TempDir() + "/no-such-directory/report.json";
  const ProgramResult result = sealane({"doctor", "--json", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sealane: cannot write ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace sealane::test
