// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane run --emulate` start a program on the emulated GPU as if it had been started by
// hand, and say in one line what it cannot do?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kProbe = SEALANE_EMU_PROBE;

// sealane run --emulate FLAGS -- COMMAND
ProgramResult emulated(const Words& flags, const Words& command) {
  Words words = {SEALANE_PROGRAM, "run", "--emulate"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return run_program(words);
}

size_t lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(RunEmulated, SaysThatItProtectsNothingAndLeavesStdoutAlone) {
  const ProgramResult result = emulated({}, {"echo", "a  b"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "a  b\n");
  EXPECT_EQ(lines(result.err), 1u) << result.err;
  EXPECT_NE(result.err.find("EMULATED GPU, confidential mode on. It protects nothing"),
            std::string::npos)
      << result.err;
}

TEST(RunEmulated, GivesTheProgramAnEmulatedGpuInBothModes) {
  const auto file =
      std::filesystem::temp_directory_path() / ("sealane-run-" + std::to_string(getpid()));
  for (const std::string cc : {"on", "off"}) {
    const ProgramResult result =
        emulated({"--cc", cc, "--memory", "256M", "--truth", file.string()}, {kProbe, "roundtrip"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.err.find("confidential mode " + cc), std::string::npos) << result.err;
    std::ifstream in(file);
    const auto truth = nlohmann::json::parse(in, nullptr, false);
    EXPECT_EQ(truth["cc"], cc == "on");
    const auto sealed = truth["to_device"]["sealed_bytes"].get<uint64_t>();
    EXPECT_EQ(sealed, cc == "on" ? truth["to_device"]["bytes"].get<uint64_t>() : 0u);
  }
  std::filesystem::remove(file);
}

TEST(RunEmulated, ExitCodesAndSignalsAreTheProgramsOwn) {
  EXPECT_EQ(emulated({}, {"sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(emulated({}, {"sh", "-c", "kill -TERM $$"}).signal, SIGTERM);
  EXPECT_EQ(emulated({}, {"sh", "-c", "kill -INT $$; exit 3"}).signal, SIGINT);
}

TEST(RunEmulated, APlatformSetsThePace) {
  const ProgramResult result =
      emulated({"--platform", "h100-tdx", "--dilation", "2"}, {"sh", "-c", "env"});
  EXPECT_NE(result.out.find("SEALANE_EMU_PACING=model"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("SEALANE_EMU_DILATION=2"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("to_device.cc.toll_us="), std::string::npos) << result.out;
}

TEST(RunEmulated, PrintsAnEnvironmentAShellUnderstands) {
  const ProgramResult printed = run_program({SEALANE_PROGRAM, "run", "--emulate", "--print-env",
                                             "--cc", "off", "--platform", "h100-sev"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const ProgramResult result =
      run_program({"sh", "-c", printed.out + "\nexec \"$0\" host_registration", kProbe});
  EXPECT_EQ(result.out, "0\n") << result.err;  // 801 with CC on
}

TEST(RunEmulated, AFlagGoesBeforeWhatTheEnvironmentSays) {
  const ProgramOptions inherited{
      .environment = {"SEALANE_OBSERVE=1", "SEALANE_ENABLE=none", "SEALANE_WORKERS=7"},
      .input = {}};
  const Words flags = {SEALANE_PROGRAM, "run",       "--emulate", "--policy",
                       "parallel",      "--workers", "3",         "--"};
  Words words = flags;
  words.push_back("env");
  const ProgramResult result = run_program(words, inherited);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("SEALANE_POLICY=parallel\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("SEALANE_WORKERS=3\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("SEALANE_OBSERVE"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("SEALANE_ENABLE"), std::string::npos) << result.out;
  words = flags;
  words.insert(words.end() - 1, "--print-env");
  const ProgramResult printed = run_program(words, inherited);
  EXPECT_NE(printed.out.find("unset SEALANE_OBSERVE\n"), std::string::npos) << printed.out;
}

TEST(Run, LosesNoFileOfAnEarlierRunToAProgramThatIsNotThere) {
  const std::string file = testing::TempDir() + "/run_test.stats";
  for (const char* program : {"/no/such/program", "no-such-program", "/tmp", "/etc/passwd"}) {
    std::ofstream(file) << "earlier";
    const ProgramResult result =
        run_program({SEALANE_PROGRAM, "run", "--emulate", "--stats", file, "--", program});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(lines(result.err), 1u) << result.err;
    EXPECT_EQ(std::filesystem::file_size(file), 7u) << program;
  }
  std::filesystem::remove(file);
}

TEST(Run, SaysThatThereIsNothingToObserveWithoutADriver) {
  const ProgramResult result = run_program({SEALANE_PROGRAM, "run", "--observe", "--", "true"});
  EXPECT_EQ(result.exit_code, 0);
  if (result.err.empty()) GTEST_SKIP() << "there is a driver here";
  EXPECT_NE(result.err.find("no GPU driver (libcuda.so.1) here"), std::string::npos) << result.err;
}

struct WrongRun {
  std::string name;
  Words words;  // after `sealane run`
  int exit_code;
  std::string says;
};

class WrongRunTest : public testing::TestWithParam<WrongRun> {};

TEST_P(WrongRunTest, IsOneClearLine) {
  Words words = {SEALANE_PROGRAM, "run"};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  const ProgramResult result = run_program(words);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  EXPECT_NE((result.out + result.err).find(GetParam().says), std::string::npos)
      << result.out << result.err;
  std::string rest = result.err;  // beside the banner
  if (rest.find("EMULATED GPU") != std::string::npos) rest.erase(0, rest.find('\n') + 1);
  EXPECT_LE(lines(rest), 1u) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, WrongRunTest,
    testing::Values(
        WrongRun{"no_program", {"--emulate"}, 2, "a program is needed"},
        WrongRun{"unknown_program",
                 {"--emulate", "--", "/no/such/program"},
                 1,
                 "cannot run /no/such/program"},
        WrongRun{
            "unknown_platform", {"--emulate", "--platform", "h1000", "--", "true"}, 2, "h100-tdx"},
        WrongRun{"unknown_pacing", {"--emulate", "--pacing", "slow", "--", "true"}, 2, "--pacing"},
        WrongRun{"unknown_part",
                 {"--enable", "engine,paralel", "--", "true"},
                 2,
                 "there is no part 'paralel'; did you mean 'parallel'?"},
        WrongRun{"no_part", {"--enable", "", "--", "true"}, 2, "is empty; write none"},
        WrongRun{"all_and_none", {"--enable", "engine,none", "--", "true"}, 2, "none means none"},
        WrongRun{"part_without_its_ground",
                 {"--enable", "engine,speculate", "--", "true"},
                 2,
                 "speculate does nothing without engine and async and parallel"},
        WrongRun{"emulated_flag_without_emulation",
                 {"--cc", "off", "--", "true"},
                 2,
                 "--cc is of the emulated GPU: add --emulate"},
        WrongRun{"idle_platform", {"--platform", "h100-tdx", "--", "true"}, 2, "--platform does"},
        WrongRun{"idle_workers",
                 {"--emulate", "--workers", "2", "--", "true"},
                 2,
                 "--workers does nothing: no part of the runtime is on"},
        WrongRun{"idle_metrics_seconds",
                 {"--metrics-seconds", "2", "--", "true"},
                 2,
                 "does nothing without --metrics"},
        WrongRun{"workers_no_number",
                 {"--workers", "many", "--", "true"},
                 2,
                 "--workers: 'many' is not a number from 1 to 1024"},
        WrongRun{"unwritable_truth",
                 {"--emulate", "--truth", "/no/such/truth", "--", "true"},
                 1,
                 "cannot write /no/such/truth"},
        WrongRun{"unknown_adversary",
                 {"--emulate", "--adversary", "bribe@3", "--", kProbe, "roundtrip"},
                 1,
                 "SEALANE_EMU_ADVERSARY"},
        WrongRun{"unknown_mode",
                 {"--emulate", "--cc", "maybe", "--", kProbe, "roundtrip"},
                 1,
                 "SEALANE_EMU_CC"},
        WrongRun{"too_many_gpus",
                 {"--emulate", "--gpus", "99", "--", kProbe, "roundtrip"},
                 1,
                 "SEALANE_EMU_GPUS"},
        WrongRun{"no_gpus",
                 {"--emulate", "--gpus", "0", "--", kProbe, "roundtrip"},
                 1,
                 "CUDA_ERROR_NO_DEVICE"},
        WrongRun{"tampered",
                 {"--emulate", "--adversary", "flip@2", "--", kProbe, "roundtrip"},
                 1,
                 "CUDA_ERROR_ECC_UNCORRECTABLE"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sealane::test
