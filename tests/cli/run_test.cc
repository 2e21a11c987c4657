// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane run --emulate` start a program on the emulated GPU as if it had been started by
// hand, and say in one line what it cannot do?

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/scratch.h"

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
  EXPECT_NE(result.err.find("EMULATED GPU, confidential mode on: protects nothing"),
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

TEST(RunEmulated, PythonFindsOperatorsBehindTheProgramsOwnModules) {
  const auto path_with = [](const char* before) {
    return run_program({"env", std::string("PYTHONPATH=") + before, SEALANE_PROGRAM, "run",
                        "--emulate", "--", "sh", "-c", "echo $PYTHONPATH"})
        .out;
  };
  const std::string ours = path_with("");
  EXPECT_NE(ours.find("/lib/emu/python\n"), std::string::npos) << ours;
  EXPECT_EQ(path_with("/my/modules"), "/my/modules:" + ours);
  // A run inside a run adds nothing.
  EXPECT_EQ(path_with(ours.substr(0, ours.size() - 1).c_str()), ours);
}

TEST(RunEmulated, EveryFlagOfTheGpuTakesWhatItsHelpNames) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--cc", "off"},
                                                        {"--gpus", "2"},
                                                        {"--memory", "512M"},
                                                        {"--adversary", "flip@3"},
                                                        {"--rotate", "1M"},
                                                        {"--contexts", "4"},
                                                        {"--compute-capability", "12.0"},
                                                        {"--compute-capability", "90"},
                                                        {"--check", "memory"},
                                                        {"--check", "memory,races"},
                                                        {"--machine-code", "skip"}}) {
    const ProgramResult result = emulated({flag, value}, {"sh", "-c", "env"});
    EXPECT_EQ(result.exit_code, 0) << flag << ' ' << value << ": " << result.err;
    EXPECT_NE(result.out.find("=" + value + "\n"), std::string::npos) << flag << ' ' << value;
  }
}

TEST(RunEmulated, PrintsAnEnvironmentAShellUnderstands) {
  const ProgramResult printed = run_program({SEALANE_PROGRAM, "run", "--emulate", "--print-env",
                                             "--cc", "off", "--platform", "h100-sev"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const ProgramResult result =
      run_program({"sh", "-c", printed.out + "\nexec \"$0\" host_registration", kProbe});
  EXPECT_EQ(result.out, "0\n") << result.err;  // 801 with CC on
}

// They may be where the environment is used.
TEST(RunEmulated, PrintsTheNamesOfKernelsThatAreNotHere) {
  const ProgramResult printed = run_program(
      {SEALANE_PROGRAM, "run", "--emulate", "--print-env", "--kernels", "./nonexist.so"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("/nonexist.so"), std::string::npos) << printed.out;
}

// What `docker run --env-file` reads: NAME=VALUE, every character of the value as it is.
std::vector<std::string> read_env_file(const std::string& text) {
  std::vector<std::string> variables;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    EXPECT_NE(line.find('='), std::string::npos) << line;
    variables.push_back(line);
  }
  return variables;
}

TEST(RunEmulated, PrintsAnEnvironmentFileThatContainersAndServicesUnderstand) {
  const ProgramResult printed =
      run_program({SEALANE_PROGRAM, "run", "--emulate", "--print-env=file", "--cc", "off",
                   "--platform", "h100-sev", "--policy", "parallel"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out.find("export"), std::string::npos) << printed.out;
  EXPECT_EQ(printed.out.find_first_of("'\"\\"), std::string::npos) << printed.out;
  const ProgramResult result = run_program(
      {kProbe, "host_registration"}, {.environment = read_env_file(printed.out), .input = {}});
  EXPECT_EQ(result.out, "0\n") << result.err;  // 801 with CC on
}

// Quotes and backslashes mean something to one reader of such files and nothing to another.
TEST(RunEmulated, RefusesAnEnvironmentFileThatReadersWouldTakeDifferently) {
  const ProgramResult result =
      run_program({SEALANE_PROGRAM, "run", "--print-env=file", "--stats", "/tmp/it's"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("SEALANE_STATS has quotes"), std::string::npos) << result.err;
}

TEST(RunEmulated, TakesFromTheEnvironmentWhatNoFlagSays) {
  const auto with = [](const Words& variables, const Words& command) {
    Words words = {SEALANE_PROGRAM, "run", "--emulate", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return run_program(words, {.environment = variables, .input = {}});
  };
  const ProgramResult set = with({"SEALANE_ENABLE=default"}, {"env"});
  EXPECT_NE(set.out.find("SEALANE_ENABLE=default\n"), std::string::npos) << set.out;
  EXPECT_NE(set.out.find("LD_PRELOAD="), std::string::npos) << set.out;
  const ProgramResult ran = with({"SEALANE_ENABLE=default"}, {kProbe, "roundtrip"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.err.find("sealane: active: engine, async, parallel"), std::string::npos) << ran.err;
  EXPECT_NE(with({"SEALANE_OBSERVE=1"}, {kProbe, "roundtrip"}).err.find("Verdict"),
            std::string::npos);
  EXPECT_EQ(with({"SEALANE_ENABLE=everything"}, {"true"}).exit_code, 2);
  EXPECT_EQ(with({"SEALANE_POLICY=everything"}, {"true"}).exit_code, 2);
  EXPECT_EQ(with({"SEALANE_EMU_CC=maybe"}, {"true"}).exit_code, 2);
}

// Programs of another prefix, whose name has a space.
TEST(Run, TheRuntimeIsThereUnderAPathWithASpace) {
  namespace fs = std::filesystem;
  const fs::path built = fs::path(SEALANE_PROGRAM).parent_path().parent_path();
  std::string name = (fs::temp_directory_path() / "sealane run XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path prefix = name;
  fs::create_directories(prefix / "bin");
  fs::copy_file(SEALANE_PROGRAM, prefix / "bin/sealane");
  fs::create_directory_symlink(built / "lib", prefix / "lib");
  const std::string stats = (prefix / "stats file").string();
  const ProgramResult result =
      run_program({(prefix / "bin/sealane").string(), "run", "--emulate", "--policy", "parallel",
                   "--stats", stats, "--", kProbe, "roundtrip"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("cannot be preloaded"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("sealane: active: engine"), std::string::npos) << result.err;
  EXPECT_TRUE(fs::exists(stats));
  const ProgramResult observed = run_program({(prefix / "bin/sealane").string(), "run", "--emulate",
                                              "--observe", "--", kProbe, "roundtrip"});
  EXPECT_EQ(observed.exit_code, 0) << observed.err;
  EXPECT_NE(observed.err.find("sealane: observing"), std::string::npos) << observed.err;
  EXPECT_NE(observed.err.find("Verdict"), std::string::npos) << observed.err;
  const std::string trace = (prefix / "a trace").string();
  const ProgramResult recorded = run_program({(prefix / "bin/sealane").string(), "record", "-o",
                                              trace, "--emulate", "--", kProbe, "roundtrip"});
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  std::stringstream text;
  text << std::ifstream(trace).rdbuf();
  EXPECT_NE(text.str().find("\ncopy "), std::string::npos) << recorded.err << text.str();
  fs::remove_all(prefix);
}

TEST(Run, SaysThatTheRuntimeIsActiveAndWithWhat) {
  const auto said = [](const Words& flags, const Words& variables = {}) {
    Words words = {SEALANE_PROGRAM, "run", "--emulate"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", kProbe, "roundtrip"});
    const ProgramResult result = run_program(words, {.environment = variables, .input = {}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  EXPECT_NE(said({"--enable", "engine,async", "--workers", "3"})
                .find("sealane: active: engine, async; 3 workers\n"),
            std::string::npos);
  EXPECT_NE(said({"--observe"}).find("sealane: observing: nothing is changed"), std::string::npos);
  EXPECT_NE(said({"--policy", "parallel", "--cc", "off"})
                .find("sealane: confidential mode is off: nothing to speed up\n"),
            std::string::npos);
  EXPECT_NE(said({"--stats", "/dev/null"}).find("every part of the runtime is off; watching only"),
            std::string::npos);
  EXPECT_EQ(said({"--policy", "parallel", "--quiet"}).find("active"), std::string::npos);
  EXPECT_EQ(said({"--policy", "parallel"}, {"SEALANE_QUIET=1"}).find("active"), std::string::npos);
}

TEST(Run, SaysThatAProgramCannotHaveTheRuntime) {
  const Scratch scratch;
  const std::string program = scratch.file("static-program");
  const std::string source = program + ".c";
  std::ofstream(source) << "int main(void) { return 0; }\n";
  if (run_program({"cc", "-static", "-o", program, source}).exit_code != 0) {
    GTEST_SKIP() << "nothing can be linked statically here";
  }
  const ProgramResult result = run_program({SEALANE_PROGRAM, "run", "--", program});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("runs WITHOUT the runtime: it is linked statically"), std::string::npos)
      << result.err;
  EXPECT_EQ(run_program({SEALANE_PROGRAM, "run", "--", "true"}).err, "");
}

TEST(Run, TakesTheLoaderForNoStaticProgram) {
  const char* loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "another loader here";
  const ProgramResult result = run_program({SEALANE_PROGRAM, "run", "--", loader, "/bin/true"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

// Of a program whose file has capabilities, or another owner, the loader takes nothing from the
// environment, unless root starts it or nothing is gained.
TEST(Run, SaysThatAProgramThatGainsRightsCannotHaveTheRuntime) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string program = testing::TempDir() + "/run_test_true." + std::to_string(getpid());
  const auto as_user = [&](const Words& more) {
    Words words = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {SEALANE_PROGRAM, "run", "--", program});
    return run_program(words);
  };
  std::filesystem::copy_file("/bin/true", program,
                             std::filesystem::copy_options::overwrite_existing);
  if (as_user({}).exit_code != 0) {
    std::filesystem::remove(program);
    GTEST_SKIP() << "another user cannot run programs from here";
  }
  EXPECT_EQ(as_user({}).err, "");
  struct statvfs system {};
  ASSERT_EQ(statvfs(program.c_str(), &system), 0);
  const bool gains = (system.f_flag & ST_NOSUID) == 0;
  const auto expect_told = [&](const std::string& why) {
    const std::string err = as_user({}).err;
    EXPECT_EQ(err.find("runs WITHOUT the runtime: " + why) != err.npos, gains) << err;
    EXPECT_EQ(err.empty(), !gains) << err;
  };
  constexpr const char* kCapabilities = "security.capability";
  constexpr vfs_cap_data kNetRaw = {
      .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
      .data = {{.permitted = 1 << CAP_NET_RAW, .inheritable = 0}, {}}};
  if (setxattr(program.c_str(), kCapabilities, &kNetRaw, sizeof kNetRaw, 0) == 0) {
    expect_told("its file gives it capabilities");
    EXPECT_EQ(run_program({SEALANE_PROGRAM, "run", "--", program}).err, "");  // root has them all
    removexattr(program.c_str(), kCapabilities);
  }
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  expect_told("it runs as another user than you");
  EXPECT_EQ(as_user({"--no-new-privs"}).err, "");
  std::filesystem::remove(program);
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
  const Scratch scratch;
  const std::string file = scratch.file("stats");
  for (const char* program : {"/no/such/program", "no-such-program", "/tmp", "/etc/passwd"}) {
    std::ofstream(file) << "earlier";
    const ProgramResult result =
        run_program({SEALANE_PROGRAM, "run", "--emulate", "--stats", file, "--", program});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(lines(result.err), 1u) << result.err;
    EXPECT_EQ(std::filesystem::file_size(file), 7u) << program;
  }
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
        // Also for programs that never call the driver.
        WrongRun{"unknown_adversary",
                 {"--emulate", "--adversary", "bribe@3", "--", "true"},
                 2,
                 "--adversary: 'bribe@3' is not ACTION@N"},
        WrongRun{"unknown_mode",
                 {"--emulate", "--cc", "maybe", "--", "true"},
                 2,
                 "--cc: 'maybe' is not one of on, off"},
        WrongRun{"too_many_gpus",
                 {"--emulate", "--gpus", "99", "--", "true"},
                 2,
                 "--gpus: '99' is not a number from 0 to 16"},
        WrongRun{"capability_that_is_none",
                 {"--emulate", "--compute-capability", "4.2", "--", "true"},
                 2,
                 "'4.2' is not a number from 5.0 to 12.9"},
        WrongRun{"unknown_check",
                 {"--emulate", "--check", "leaks", "--", "true"},
                 2,
                 "'leaks' is not one of memory, races"},
        WrongRun{"unknown_reach", {"--emulate", "--reach", "x", "--", "true"}, 2, "--reach"},
        WrongRun{"dilation_that_is_none",
                 {"--emulate", "--dilation", "nan", "--", "true"},
                 2,
                 "'nan' is not a number from 1 to 10000"},
        WrongRun{"small_letters", {"--emulate", "--message", "64k", "--", "true"}, 2, "--message"},
        WrongRun{"unknown_form", {"--print-env=toml"}, 2, "unknown 'toml'; there are: shell, file"},
        WrongRun{"no_gpus",
                 {"--emulate", "--gpus", "0", "--", kProbe, "roundtrip"},
                 1,
                 "CUDA_ERROR_NO_DEVICE"},
        WrongRun{"tampered",
                 {"--emulate", "--adversary", "flip@2", "--", kProbe, "roundtrip"},
                 1,
                 "CUDA_ERROR_ECC_UNCORRECTABLE"}),
    [](const auto& tested) { return tested.param.name; });

// sealane run --emulate FLAGS -- COMMAND, with a variable.
ProgramResult emulated_with(const std::string& variable, const Words& flags, const Words& command) {
  Words words = {SEALANE_PROGRAM, "run", "--emulate"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return run_program(words, {.environment = {variable}, .input = {}});
}

TEST(RunEmulated, SaysTheModeThatHoldsWhoeverSetIt) {
  const struct {
    std::string variable;
    Words flags;
    std::string mode;
  } cases[] = {{"SEALANE_EMU_CC=off", {}, "off"},
               {"SEALANE_EMU_CC=0", {}, "off"},
               {"SEALANE_EMU_CC=", {"--cc", "0"}, "off"},
               {"SEALANE_EMU_CC=1", {}, "on"},
               {"SEALANE_EMU_CC=off", {"--cc", "1"}, "on"}};
  for (const auto& [variable, flags, mode] : cases) {
    const ProgramResult result = emulated_with(variable, flags, {"sh", "-c", "env"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("confidential mode " + mode + ":"), std::string::npos)
        << variable << ": " << result.err;
    if (variable != "SEALANE_EMU_CC=") {
      EXPECT_NE(result.out.find("SEALANE_EMU_CC=" + mode + "\n"), std::string::npos) << result.out;
    }
  }
}

TEST(RunEmulated, VariablesSetThePaceAsFlagsDo) {
  const auto pace = [](const std::string& variable, const Words& flags) {
    return emulated_with(variable, flags, {"sh", "-c", "echo $SEALANE_EMU_PACING"}).out;
  };
  EXPECT_EQ(pace("SEALANE_EMU_PACING=model", {}), "model\n");
  EXPECT_EQ(pace("SEALANE_EMU_DILATION=7", {}), "model\n");
  EXPECT_EQ(pace("SEALANE_EMU_PACING=model", {"--pacing", "none"}), "none\n");
  EXPECT_EQ(pace("SEALANE_EMU_PACING=none", {"--platform", "h100-tdx"}), "model\n");
  EXPECT_EQ(pace("SEALANE_EMU_PACING=none", {"--dilation", "2"}), "model\n");
}

TEST(RunEmulated, AVariableIsRefusedWhereItsFlagWouldBe) {
  for (const char* variable :
       {"SEALANE_STATS=-", "SEALANE_RECORD=-", "SEALANE_TRACE=-", "SEALANE_METRICS=-",
        "SEALANE_EMU_STATS=-", "SEALANE_AEAD=bogus", "SEALANE_METRICS_SECONDS=0",
        "SEALANE_COSTS=garbage", "SEALANE_WORKERS=many", "SEALANE_OBSERVE=no",
        "SEALANE_EMU_ATEN=abc", "SEALANE_EMU_PACING=fast", "SEALANE_EMU_DILATION=0",
        "SEALANE_EMU_WORKERS=many", "SEALANE_EMU_MODEL=garbage",
        "SEALANE_EMU_MODEL=to_device.cc.toll_us=x"}) {
    const ProgramResult result =
        emulated_with(variable, {"--pacing", "model", "--enable", "engine"}, {"echo", "RAN"});
    const std::string name = std::string(variable).substr(0, std::string(variable).find('='));
    // What a flag says is what holds.
    if (name == "SEALANE_OBSERVE" || name == "SEALANE_EMU_PACING") continue;
    EXPECT_EQ(result.exit_code, 2) << variable << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("sealane: " + name + ": ")) << result.err;
    EXPECT_EQ(lines(result.err), 1u) << result.err;
    EXPECT_EQ(result.out, "") << variable;
  }
  for (const char* variable : {"SEALANE_OBSERVE=no", "SEALANE_EMU_PACING=fast"}) {
    EXPECT_EQ(emulated_with(variable, {}, {"true"}).exit_code, 2) << variable;
  }
  EXPECT_FALSE(std::filesystem::exists("-"));
}

}  // namespace
}  // namespace sealane::test
