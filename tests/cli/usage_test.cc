// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every subcommand owes its user: help that helps, and errors of one clear line.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/scratch.h"

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
        WrongUse{"unknown_flag_before_a_program",
                 {"run", "--emulate", "--bogus", "x", "--", "true"},
                 "unknown option '--bogus' of 'sealane run'"},
        WrongUse{"empty_platform", {"sim", "--platform", ""}, "--platform: is empty"},
        WrongUse{"empty_model", {"estimate", "--workload", "decode", "--model", ""}, "is empty"},
        WrongUse{"empty_policy", {"estimate", "--workload", "decode", "--policy", ""}, "is empty"},
        WrongUse{"empty_kernels", {"run", "--emulate", "--kernels", "", "--", "true"}, "is empty"},
        WrongUse{"kernels_that_are_not_there",
                 {"run", "--emulate", "--kernels", "./nonexist.so", "--", "true"},
                 "./nonexist.so cannot be read"},
        WrongUse{"kernels_of_a_trial_that_are_not_there",
                 {"trial", "--emulate", "--kernels", "./nonexist.so", "--", "true"},
                 "./nonexist.so cannot be read"},
        WrongUse{"empty_run_platform",
                 {"run", "--emulate", "--platform", "", "--", "true"},
                 "--platform: is empty"},
        WrongUse{"directory_as_log", {"doctor", "--nccl", "--log", "/"}, "/: cannot be read"},
        WrongUse{"directory_as_result", {"report", "/", "-o", "/dev/null"}, "/: cannot be read"},
        WrongUse{"flag_of_another",
                 {"doctor", "--frob"},
                 "unknown option '--frob' of 'sealane doctor'; there are: "},
        WrongUse{
            "flag_too_early", {"--json", "-", "doctor"}, "unknown option '--json' of 'sealane'"},
        WrongUse{"misspelt_flag_of_command", {"doctor", "--jsn=x"}, "did you mean '--json'?"},
        WrongUse{"value_missing", {"doctor", "--json"}, "--json"},
        WrongUse{"number_of_a_flag",
                 {"run", "--observe=-1", "--", "true"},
                 "--observe: takes no value, but is given '-1'"},
        WrongUse{"word_of_a_flag",
                 {"estimate", "--list=off"},
                 "--list: takes no value, but is given 'off'"},
        WrongUse{"unknown_form", {"run", "--print-env=-1"}, "there are: shell, file"},
        WrongUse{"word_too_many", {"doctor", "now"}, "unexpected argument 'now'"},
        WrongUse{"newline_in_word", {"doctor\nnow"}, "unknown command"},
        WrongUse{"newline_in_flag", {"doctor", "--fr\nob"}, "unknown option"},
        WrongUse{"two_commands", {"doctor", "bench"}, "unexpected argument 'bench'"},
        WrongUse{
            "required_flag_before_a_program", {"record", "--", "true"}, "--output is required"},
        WrongUse{"unknown_policy_before_a_program",
                 {"run", "--policy", "paralel", "--", "true"},
                 "there is no policy 'paralel'; did you mean 'parallel'?"},
        WrongUse{"policy_of_the_simulator",
                 {"run", "--policy", "pipellm", "--", "true"},
                 "there are: stock, parallel, sealane, speculate"},
        WrongUse{"delay_of_a_network",
                 {"bench", "nccl", "--delay-us", "-3"},
                 "'-3' is not a number from 0 to 1000000"},
        WrongUse{"flag_of_the_program",
                 {"run", "true", "--frob"},
                 "if it is the program's, write -- before the program"},
        WrongUse{"seed_of_a_table", {"sim", "--hits", "--seed", "3"}, "--seed excludes --hits"},
        WrongUse{"workers_of_a_benchmark",
                 {"bench", "copy", "--workers", "2,x"},
                 "'x' is not a number from 1 to 1024"},
        WrongUse{"check_of_a_benchmark",
                 {"bench", "allreduce", "-c", "7"},
                 "is not a number from 0 to 1"},
        WrongUse{"key_to_stdout", {"keygen", "-"}, "keygen needs a file's name"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Cli, HelpShowsCommandsAndExamples) {
  const ProgramResult result = sealane({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("Examples:"), std::string::npos);
  EXPECT_NE(result.out.find("sealane doctor"), std::string::npos);
  EXPECT_NE(result.out.find("bench"), std::string::npos);
}

TEST(Cli, EveryCommandHasHelpOfItsOwnThatFitsATerminal) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"doctor"},
                                                          {"run"},
                                                          {"record"},
                                                          {"estimate"},
                                                          {"report"},
                                                          {"sim"},
                                                          {"bench"},
                                                          {"bench", "seal"},
                                                          {"bench", "copy"},
                                                          {"validate"},
                                                          {"keygen"},
                                                          {"bench", "allreduce"}};
  for (std::vector<std::string> words : commands) {
    const bool root = words.empty();
    words.push_back("--help");
    const ProgramResult result = sealane(words);
    EXPECT_EQ(result.exit_code, 0) << words[0];
    EXPECT_NE(result.out.find("Usage: "), std::string::npos) << words[0];
    EXPECT_EQ(result.out.find("sealane keygen group.key") != std::string::npos, root) << words[0];
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << words[0] << ": " << line;
    }
  }
}

TEST(Cli, UsageIsWhatOneTypes) {
  for (const auto& [command, usage] : {std::pair("run", "-- PROGRAM [ARGUMENT...]"),
                                       {"trial", "-- PROGRAM [ARGUMENT...]"},
                                       {"report", "RUN.json..."},
                                       {"keygen", "FILE"},
                                       {"sim", "[TRACE...]"},
                                       {"bench", "COMMAND"}}) {
    const std::string out = sealane({command, "--help"}).out;
    const std::string line =
        std::string("Usage: sealane ") + command + " [OPTIONS] " + usage + "\n";
    EXPECT_NE(out.find(line), std::string::npos) << out;
    EXPECT_EQ(out.find("\n\n\n"), std::string::npos) << out;
  }
  const std::string run = sealane({"run", "--help"}).out;
  EXPECT_NE(run.find("  --print-env[=shell|file]  "), std::string::npos) << run;
}

TEST(Cli, VersionIsOneLine) {
  const ProgramResult result = sealane({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("sealane ")) << result.out;
  for (const char* part : {"commit ", "engines here: ", " openssl", "emulator"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << result.out;
  }
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

// "SEALANE_…" as docs quote them; cut-off names and those of CMake and the code are not variables.
std::set<std::string> documented_variables() {
  std::set<std::string> names;
  const std::regex quoted("`(SEALANE_[A-Z_]*[A-Z])[`=]");
  for (const auto& entry : std::filesystem::directory_iterator(SEALANE_SOURCE_DIR "/docs")) {
    if (!entry.is_regular_file()) continue;  // a folder of results
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  }
  names.erase("SEALANE_CHECK");
  names.erase("SEALANE_TEST_MESSAGES");  // tests read it, no program of ours
  return names;
}

TEST(Cli, EveryDocumentedVariableIsKnown) {
  ProgramOptions options;
  for (const std::string& name : documented_variables()) {
    if (name != "SEALANE_PLATFORMS") options.environment.push_back(name + "=1");
  }
  ASSERT_GT(options.environment.size(), 20u);
  EXPECT_EQ(sealane({"estimate", "--list"}, options).err, "");
}

TEST(Cli, AKeyIsNeverOverwritten) {
  const Scratch scratch;
  const std::string path = scratch.file("key");
  EXPECT_EQ(sealane({"keygen", path}).exit_code, 0);
  const auto written = std::filesystem::last_write_time(path);
  const ProgramResult again = sealane({"keygen", path});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("exists, and a key is never overwritten"), std::string::npos);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
}

TEST(Cli, CertificatesAreMadeOnceAndTheirKeysAreTheirOwners) {
  const Scratch scratch;
  const std::string path = scratch.file("pki");
  const ProgramResult made = sealane({"keygen", "--certificates", "2", "--group", "job", path});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"/ca.key", "/0.key", "/1.key"}) {
    EXPECT_EQ(std::filesystem::status(path + name).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  EXPECT_TRUE(std::filesystem::exists(path + "/1.pem"));
  EXPECT_FALSE(std::filesystem::exists(path + "/2.pem"));
  EXPECT_EQ(sealane({"keygen", "--certificates", "2", path}).exit_code, 2);
  EXPECT_EQ(sealane({"keygen", "--group", "job", path + "2"}).exit_code, 2);
}

TEST(Cli, AnInterruptedBenchmarkLeavesNothingBehind) {
  std::string directory = testing::TempDir() + "/sealane-usage-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const ProgramResult result =
      run_program({"timeout", "--preserve-status", "-s", "INT", "1", SEALANE_PROGRAM, "bench",
                   "allreduce", "-b", "64K", "-e", "64K", "-n", "10000000", "--mode", "sealed"},
                  {.environment = {"TMPDIR=" + directory}, .input = {}});
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
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

// sh -c SCRIPT, where "$0" is the program.
ProgramResult shell(const std::string& script) {
  return run_program({"sh", "-c", script, SEALANE_PROGRAM});
}

TEST(Stderr, ThatNobodyHearsKeepsNoProgramFromRunning) {
  for (const char* where : {"2>&-", "2>/dev/full"}) {
    for (const std::string flags : {"--emulate", "--emulate --observe", "--observe"}) {
      const ProgramResult result =
          shell("SEALANE_BOGUS=1 \"$0\" run " + flags + " -- sh -c 'echo RAN' " + where);
      EXPECT_EQ(result.exit_code, 0) << flags << " " << where << " signal " << result.signal;
      EXPECT_EQ(result.out, "RAN\n") << flags << " " << where;
    }
    for (const std::string command : {"docter", "sim --ops 0", "estimate"}) {
      EXPECT_EQ(shell("\"$0\" " + command + " " + where).exit_code, 2) << command << where;
    }
    EXPECT_EQ(shell(std::string("\"$0\" report /no/such -o /dev/null ") + where).exit_code, 2);
  }
}

TEST(Stderr, ThatIsClosedIsNotTheNextFileThatIsOpened) {
  const std::string file = testing::TempDir() + "/usage_test." + std::to_string(getpid());
  const ProgramResult result =
      shell("\"$0\" estimate --workload decode --draws 0 --json '" + file + "' >&- 2>&- <&-");
  EXPECT_EQ(result.exit_code, 1);  // the table has nowhere to go
  std::filesystem::remove(file);
}

TEST(Help, ThatCannotBeWrittenIsAnError) {
  for (const std::string flag : {"--help", "--version", "run --help", "bench copy --help"}) {
    const ProgramResult result = shell("\"$0\" " + flag + " >/dev/full");
    EXPECT_EQ(result.exit_code, 1) << flag;
    EXPECT_NE(result.err.find("cannot write standard output"), std::string::npos) << result.err;
  }
}

TEST(Commands, DoWithoutThreadsThatAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody with a limit";
  const std::string limited =
      "exec setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --nproc=1 ";
  if (shell(limited + "\"$0\" --version").exit_code != 0) GTEST_SKIP() << "nobody cannot run it";
  for (const std::string command : {"sim --seeds 0..3", "estimate --workload decode --draws 0"}) {
    const ProgramResult result = shell(limited + "\"$0\" " + command);
    EXPECT_EQ(result.exit_code, 0) << command << ": signal " << result.signal << result.err;
  }
}

TEST(Commands, SayInOneLineWhatNobodyForesaw) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more addresses than the limit leaves";
#endif
  const ProgramResult result =
      shell("ulimit -v 100000; exec \"$0\" estimate --workload vllm --draws 0");
  EXPECT_EQ(result.exit_code, 1) << "signal " << result.signal;
  EXPECT_EQ(result.err, "sealane: there is not enough memory for this\n");
}

TEST(Commands, SayThatTheirDirectoryIsGone) {
  for (const std::string command :
       {"run --emulate --stats s", "record --emulate -o x", "run --emulate --truth t"}) {
    const ProgramResult result =
        shell("d=$(mktemp -d); cd $d; rmdir $d; exec \"$0\" " + command + " -- true");
    EXPECT_EQ(result.exit_code, 1) << command << result.signal;
    EXPECT_NE(result.err.find("the directory this was started in is gone"), std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace sealane::test
