// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does no command, whatever file it is told to write, destroy a device, a link, a pipe or something
// it was to read?

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

ProgramResult sealane(Words words) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  return run_program(words);
}

class Outputs : public testing::Test {
 protected:
  Outputs() {
    std::string name = (fs::temp_directory_path() / "sealane-outputs-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~Outputs() override { fs::remove_all(directory_); }

  std::string file(const std::string& name) const { return (directory_ / name).string(); }

  // A program on the emulated GPU that really copies.
  static const Words& program() {
    static const Words words = {"--", SEALANE_EMU_PROBE, "roundtrip"};
    return words;
  }
  static ProgramResult emulated(Words words) {
    words.insert(words.end(), program().begin(), program().end());
    return sealane(words);
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

// One call of every output of a program under the runtime.
struct ProgramOutput {
  const char* name;
  Words words;  // before the file's name
};

const ProgramOutput kProgramOutputs[] = {
    {"stats", {"run", "--emulate", "--stats"}}, {"metrics", {"run", "--emulate", "--metrics"}},
    {"trace", {"run", "--emulate", "--trace"}}, {"truth", {"run", "--emulate", "--truth"}},
    {"record", {"record", "--emulate", "-o"}},
};

class ProgramOutputs : public Outputs, public testing::WithParamInterface<ProgramOutput> {
 protected:
  ProgramResult to(const std::string& path) const {
    Words words = GetParam().words;
    words.push_back(path);
    return emulated(words);
  }
};

TEST_P(ProgramOutputs, ADeviceStaysADevice) {
  const std::string device = file("null");
  if (mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  const ProgramResult result = to(device);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  struct stat status {};
  ASSERT_EQ(lstat(device.c_str(), &status), 0) << "the device is gone";
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(files(), 1u);
}

TEST_P(ProgramOutputs, ALinkStaysALinkAndWhatItPointsToIsWritten) {
  write(file("real"), "earlier");
  fs::create_symlink("real", file("latest"));
  const ProgramResult result = to(file("latest"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(file("latest")));
  EXPECT_NE(contents(file("real")), "earlier");
  EXPECT_GT(contents(file("real")).size(), 20u);
  EXPECT_EQ(files(), 2u);
}

TEST_P(ProgramOutputs, ADanglingLinkIsFilled) {
  fs::create_symlink(file("new"), file("latest"));
  EXPECT_EQ(to(file("latest")).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(file("latest")));
  EXPECT_GT(contents(file("new")).size(), 20u);
}

TEST_P(ProgramOutputs, TheProgramIsNeverOverwritten) {
  fs::copy_file(SEALANE_EMU_PROBE, file("prog"));
  const std::string before = contents(file("prog"));
  for (const std::string& output :
       {file("prog"), file("../" + directory_.filename().string() + "/prog")}) {
    Words words = GetParam().words;
    words.insert(words.end(), {output, "--", file("prog"), "roundtrip"});
    const ProgramResult result = sealane(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("would overwrite"), std::string::npos) << result.err;
    EXPECT_TRUE(contents(file("prog")) == before);
  }
}

TEST_P(ProgramOutputs, NorAFileThatIsGivenToTheProgram) {
  write(file("model.bin"), "weights");
  Words words = GetParam().words;
  words.insert(words.end(), {file("model.bin"), "--", "cat", file("model.bin")});
  const ProgramResult result = sealane(words);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(contents(file("model.bin")), "weights");
}

TEST_P(ProgramOutputs, NorAnyOtherProgramOrLibrary) {
  fs::copy_file(SEALANE_EMU_PROBE, file("lib.so"));
  fs::permissions(file("lib.so"), fs::perms(0644));
  write(file("shim"), "#!/bin/sh\n");
  for (const char* name : {"lib.so", "shim"}) {
    const std::string before = contents(file(name));
    const ProgramResult result = to(file(name));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(contents(file(name)) == before) << name;
  }
}

TEST_P(ProgramOutputs, NoNameAndTheProgramsOwnStdoutAreRefused) {
  for (const std::string name : {"", "-"}) {
    const ProgramResult result = to(name);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_FALSE(fs::exists("-"));
}

TEST_P(ProgramOutputs, ADirectoryOrABlockDeviceIsRefused) {
  if (std::string(GetParam().name) != "metrics") {
    EXPECT_EQ(to(directory_.string()).exit_code, 1);
  }
  const std::string disk = file("disk");
  if (mknod(disk.c_str(), S_IFBLK | 0600, makedev(7, 250)) != 0) return;
  const ProgramResult result = to(disk);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("neither a file nor a pipe nor a device"), std::string::npos)
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(All, ProgramOutputs, testing::ValuesIn(kProgramOutputs),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_F(Outputs, APipeIsWrittenThroughAndOneThatNobodyReadsIsNoWait) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  const ProgramResult unread = sealane({"doctor", "--json", file("pipe")});
  EXPECT_EQ(unread.exit_code, 1);
  EXPECT_NE(unread.err.find("nobody reads that pipe"), std::string::npos) << unread.err;

  const int reader = open(file("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const ProgramResult result =
      emulated({"run", "--emulate", "--stats", file("pipe"), "--trace", "/dev/null"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::array<char, 65536> text;
  const ssize_t got = read(reader, text.data(), text.size());
  close(reader);
  ASSERT_GT(got, 0);
  const auto stats =
      nlohmann::json::parse(std::string(text.data(), static_cast<size_t>(got)), nullptr, false);
  EXPECT_EQ(stats["version"], 1);
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
}

TEST_F(Outputs, DevStdoutIsStdoutWhereverItLeads) {
  // To a file, behind what is there already.
  const ProgramResult result = run_program(
      {"sh", "-c", "(echo first; \"$0\" estimate --workload decode --json /dev/stdout) > \"$1\"",
       SEALANE_PROGRAM, file("out")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contents(file("out")).starts_with("first\n")) << contents(file("out")).substr(0, 200);
  EXPECT_NE(contents(file("out")).find("\"kind\": \"estimate\""), std::string::npos);
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  const ProgramResult stats = emulated({"run", "--emulate", "--stats", "/dev/stdout"});
  EXPECT_NE(stats.out.find("\"to_device\""), std::string::npos) << stats.out;
  // A program with the same word does not read what is written.
  const ProgramResult word =
      sealane({"run", "--emulate", "--stats", "/dev/stdout", "--", "echo", "/dev/stdout"});
  EXPECT_EQ(word.exit_code, 0) << word.err;
  EXPECT_EQ(word.out, "/dev/stdout\n");
}

TEST_F(Outputs, AFileThatIsReadIsNotWritten) {
  ASSERT_EQ(emulated({"record", "--emulate", "-o", file("t")}).exit_code, 0);
  const std::string trace = contents(file("t"));
  fs::create_symlink("t", file("link"));
  fs::create_hard_link(file("t"), file("hard"));
  for (const char* flag : {"--json", "--trace"}) {
    for (const char* name : {"t", "link", "hard"}) {
      const ProgramResult result = sealane({"estimate", file("t"), flag, file(name)});
      EXPECT_EQ(result.exit_code, 2) << result.err;
      EXPECT_EQ(contents(file("t")), trace) << flag << " " << name;
    }
  }
  ASSERT_EQ(sealane({"estimate", file("t"), "--json", file("a.json")}).exit_code, 0);
  const std::string json = contents(file("a.json"));
  EXPECT_EQ(sealane({"report", file("a.json"), "-o", file("a.json")}).exit_code, 2);
  EXPECT_EQ(contents(file("a.json")), json);

  const fs::path platform = fs::path(SEALANE_SOURCE_DIR) / "platforms/h100-tdx.toml";
  fs::copy_file(platform, file("p.toml"));
  EXPECT_EQ(sealane({"estimate", file("t"), "--platform", file("p.toml"), "--json", file("p.toml")})
                .exit_code,
            2);
  EXPECT_EQ(contents(file("p.toml")), contents(platform));
}

// Every command with a file that it reads given as the one it writes, "@" before its name.
struct Reading {
  const char* name;
  std::string file;  // in the test's directory
  Words words;
  std::vector<std::string> environment{};
};

// A folder of what every command reads.
class Readings : public Outputs, public testing::WithParamInterface<Reading> {
 protected:
  Readings() {
    const fs::path source = SEALANE_SOURCE_DIR;
    fs::copy_file(source / "platforms/h100-tdx.toml", file("p.toml"));
    fs::copy_file(source / "platforms/h100-tdx.toml", file("h100-tdx.toml"));
    fs::copy_file(SEALANE_EMU_PROBE, file("prog"));
    fs::copy_file("/bin/sh", file("shell"));
    write(file("script"), "#!" + file("shell") + "\ntrue\n");
    fs::permissions(file("script"), fs::perms(0755));
    write(file("split"), "#!/usr/bin/env -S -i -u NAME A=B shell -u\ntrue\n");
    fs::permissions(file("split"), fs::perms(0755));
    fs::create_directories(file("vd/nsys"));
    fs::create_directories(file("blind"));
    for (const char* name : {"plug.so", "log", "kernels.so", "blind/measured.csv", "weights"}) {
      write(file(name), "read, not written\n");
    }
    for (const char* mode : {"off", "on"}) {
      for (const char* kind : {"api", "gpu"}) {
        write(file(std::string("vd/nsys/a-") + mode + "_cuda_" + kind + "_trace.csv"), "csv\n");
      }
    }
    const std::string trace =
        "sealane-trace 1\ncreate context c1 t1\ncreate stream s1 c1 nonblocking t1\n"
        "copy h2d s1 0x1000 0x7f00 65536 pinned async t1\n";
    write(file("t"), trace);
    write(file("blind/run.trace"), trace);
    fs::copy_file(file("p.toml"), file("blind/p.toml"));
    write(file("blind/manifest.toml"),
          "sender = \"a\"\nplatform = \"p.toml\"\n[[run]]\nname = \"r\"\n"
          "trace = \"run.trace\"\nmeasures = \"slowdown\"\n");
    write(file("run.json"),
          R"({"rows":[{"op":"allreduce","bytes":1,"system":"s","mode":"m","busbw_gb_s":1}]})");
  }

  std::string whole(std::string word) const {
    const size_t at = word.find('@');
    return at == word.npos ? word : word.replace(at, 1, directory_.string() + "/");
  }
};

const Reading kReadings[] = {
    {"run_stats",
     "p.toml",
     {"run", "--emulate", "--platform", "@p.toml", "--stats", "@p.toml", "--", "true"}},
    {"run_truth",
     "p.toml",
     {"run", "--emulate", "--platform", "@p.toml", "--truth", "@p.toml", "--", "true"}},
    {"run_by_name",
     "p.toml",
     {"run", "--emulate", "--platform", "p", "--trace", "@p.toml", "--", "true"},
     {"SEALANE_PLATFORMS=@"}},
    {"run_kernels",
     "kernels.so",
     {"run", "--emulate", "--kernels", "@kernels.so", "--stats", "@kernels.so", "--", "true"}},
    {"run_truth_by_variable",
     "prog",
     {"run", "--emulate", "--", "@prog", "roundtrip"},
     {"SEALANE_EMU_STATS=@prog"}},
    {"run_stats_by_variable",
     "prog",
     {"run", "--emulate", "--", "@prog", "roundtrip"},
     {"SEALANE_STATS=@prog"}},
    {"run_option_of_the_program",
     "weights",
     {"run", "--stats", "@weights", "--", "true", "--model=@weights"}},
    {"run_interpreter", "shell", {"run", "--stats", "@shell", "--", "@script"}},
    {"run_interpreter_of_env",
     "shell",
     {"run", "--stats", "@shell", "--", "@split"},
     {"PATH=@:/usr/bin:/bin"}},
    {"run_preload",
     "plug.so",
     {"run", "--stats", "@plug.so", "--", "true"},
     {"LD_PRELOAD=@plug.so"}},
    {"trial_platform",
     "p.toml",
     {"trial", "--emulate", "--platform", "p", "--json", "@p.toml", "-o", "@trial", "--", "true"},
     {"SEALANE_PLATFORMS=@"}},
    {"trial_interpreter", "shell", {"trial", "-o", "@trial", "--json", "@shell", "--", "@script"}},
    {"record",
     "p.toml",
     {"record", "--emulate", "--platform", "@p.toml", "-o", "@p.toml", "--", "true"}},
    {"sim", "p.toml", {"sim", "--seed", "1", "--platform", "@p.toml", "--json", "@p.toml"}},
    {"sim_by_name",
     "p.toml",
     {"sim", "--seed", "1", "--platform", "p", "--json", "@p.toml"},
     {"SEALANE_PLATFORMS=@"}},
    {"sim_steps", "p.toml", {"sim", "--steps", "--platform", "@p.toml", "--json", "@p.toml"}},
    {"sim_trace", "t", {"sim", "--seed", "0", "@t", "--json", "@t"}},
    {"sim_hits", "t", {"sim", "--hits", "@t", "--json", "@t"}},
    {"bench_copy",
     "p.toml",
     {"bench", "copy", "--examples", "layer_swap", "--rounds", "1", "--platform", "@p.toml",
      "--json", "@p.toml"}},
    {"bench_copy_program",
     "layer_swap",
     {"bench", "copy", "--examples", "layer_swap", "--examples-dir", "@", "--json", "@layer_swap"}},
    {"bench_engines",
     "p.toml",
     {"bench", "engines", "--python", "/bin/sh", "--platform", "@p.toml", "--json", "@p.toml"}},
    {"bench_allreduce", "log", {"bench", "allreduce", "--json", "@log"}, {"SEALANE_KEY_FILE=@log"}},
    {"certificate", "log", {"doctor", "--json", "@log"}, {"SEALANE_CERT_FILE=@log"}},
    {"certificate_key", "log", {"doctor", "--json", "@log"}, {"SEALANE_CERT_KEY_FILE=@log"}},
    {"authorities", "log", {"doctor", "--json", "@log"}, {"SEALANE_CA_FILE=@log"}},
    {"bench_nccl", "plug.so", {"bench", "nccl", "--plugin", "@plug.so", "--json", "@plug.so"}},
    {"doctor", "log", {"doctor", "--nccl", "--log", "@log", "--json", "@log"}},
    {"doctor_plugin",
     "plug.so",
     {"doctor", "--nccl", "--json", "@plug.so"},
     {"NCCL_NET_PLUGIN=@plug.so"}},
    {"validate",
     "vd/nsys/a-on_cuda_gpu_trace.csv",
     {"validate", "--data", "@vd", "--json", "@vd/nsys/a-on_cuda_gpu_trace.csv"}},
    {"validate_platform",
     "p.toml",
     {"validate", "--draws", "0", "--json", "@p.toml"},
     {"SEALANE_PLATFORMS=@"}},
    {"blind_trace",
     "blind/run.trace",
     {"validate", "--blind", "@blind", "--json", "@blind/run.trace"}},
    {"blind_platform",
     "blind/p.toml",
     {"validate", "--blind", "@blind", "--json", "@blind/p.toml"}},
    {"estimate", "t", {"estimate", "@t", "--json", "@t"}},
    {"estimate_by_name",
     "p.toml",
     {"estimate", "--workload", "decode", "--platform", "p", "--json", "@p.toml"},
     {"SEALANE_PLATFORMS=@"}},
    {"estimate_list",
     "p.toml",
     {"estimate", "--list", "--json", "@p.toml"},
     {"SEALANE_PLATFORMS=@"}},
    {"estimate_local",
     "h100-tdx.toml",
     {"estimate", "--workload", "decode", "--platform", "local", "--json", "@h100-tdx.toml"},
     {"SEALANE_PLATFORMS=@"}},
    {"estimate_save",
     "p.toml",
     {"estimate", "--workload", "decode", "--platform", "@p.toml", "--save-platform", "@p.toml"}},
    {"report", "run.json", {"report", "@run.json", "-o", "@run.json"}},
    {"report_json", "run.json", {"report", "@run.json", "-o", "@page", "--json", "@run.json"}},
};

TEST_P(Readings, OfACommandAreNotItsOutputs) {
  if (GetParam().file == "layer_swap") write(file("layer_swap"), "program");
  const std::string before = contents(file(GetParam().file));
  ASSERT_NE(before, "");
  Words words = {SEALANE_PROGRAM};
  for (const std::string& word : GetParam().words) words.push_back(whole(word));
  ProgramOptions options;
  for (const std::string& entry : GetParam().environment) {
    options.environment.push_back(whole(entry));
  }
  const ProgramResult result = run_program(words, options);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("would overwrite"), std::string::npos) << result.err;
  EXPECT_TRUE(contents(file(GetParam().file)) == before);
}

INSTANTIATE_TEST_SUITE_P(All, Readings, testing::ValuesIn(kReadings),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_F(Outputs, OfAProgramAreNotItsStandardInput) {
  write(file("in"), "to be read\n");
  for (const char* words :
       {"run --stats \"$1\" -- cat", "trial -o \"$1.trial\" --json \"$1\" -- cat"}) {
    const ProgramResult result = run_program(
        {"sh", "-c", "\"$0\" " + std::string(words) + " < \"$1\"", SEALANE_PROGRAM, file("in")});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(contents(file("in")), "to be read\n");
  }
}

TEST_F(Outputs, OfAttachAreNotTheProgramItAsks) {
  fs::copy_file("/bin/sh", file("shell"));
  const uintmax_t size = fs::file_size(file("shell"));
  const ProgramResult result =
      run_program({file("shell"), "-c", "\"$0\" attach $$ --json \"$1\"; exit $?", SEALANE_PROGRAM,
                   file("shell")});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("would overwrite"), std::string::npos) << result.err;
  EXPECT_EQ(fs::file_size(file("shell")), size);
}

// The file would be replaced, and what was said there lost with the one before.
TEST_F(Outputs, AreNotTheFileThatStdoutOrStderrGoesTo) {
  for (const char* words :
       {"run --stats \"$1\" -- echo RAN", "record -o \"$1\" -- echo RAN", "doctor --json \"$1\"",
        "estimate --workload decode --draws 0 --json \"$1\"", "sim --seed 1 --json \"$1\"",
        "bench seal --json \"$1\""}) {
    for (const char* where : {" > \"$1\"", " >> \"$1\"", " 2> \"$1\""}) {
      const ProgramResult result = run_program(
          {"sh", "-c", "\"$0\" " + std::string(words) + where, SEALANE_PROGRAM, file("same")});
      EXPECT_EQ(result.exit_code, 2) << words << where;
      const std::string said = result.err + contents(file("same"));
      EXPECT_NE(said.find(" is where standard "), std::string::npos) << said;
      EXPECT_EQ(said.find("RAN"), std::string::npos) << said;
      fs::remove(file("same"));
    }
  }
}

// In a copy: what would be overwritten is not what all other tests use.
TEST_F(Outputs, AreNothingOfOurOwn) {
  const fs::path prefix = fs::path(SEALANE_PROGRAM).parent_path().parent_path();
  const Words parts = {"bin/sealane", "lib/sealane/libsealane-preload.so", "lib/emu/libcuda.so.1"};
  for (const std::string& part : parts) {
    fs::create_directories(fs::path(file(part)).parent_path());
    fs::copy_file(prefix / part, file(part));
  }
  fs::create_directories(file("examples/engines"));
  write(file("examples/engines/run.py"), "what bench engines looks for");
  for (const std::string& part : parts) {
    const uintmax_t size = fs::file_size(file(part));
    for (const Words& words :
         std::vector<Words>{{"run", "--stats", file(part), "--", "true"},
                            {"trial", "-o", file("trial"), "--json", file(part), "--", "true"},
                            {"bench", "copy", "--examples", "layer_swap", "--rounds", "1",
                             "--examples-dir", directory_.string(), "--json", file(part)},
                            {"bench", "engines", "--python", "/bin/sh", "--json", file(part)}}) {
      Words all = {file("bin/sealane")};
      all.insert(all.end(), words.begin(), words.end());
      const ProgramResult result = run_program(all);
      EXPECT_EQ(result.exit_code, 2) << result.err;
      EXPECT_NE(result.err.find("would overwrite"), std::string::npos) << result.err;
      EXPECT_EQ(fs::file_size(file(part)), size);
    }
  }
  const ProgramResult doctor =
      run_program({file("bin/sealane"), "doctor", "--json", file("bin/sealane")});
  EXPECT_EQ(doctor.exit_code, 2) << doctor.err;
}

TEST_F(Outputs, TwoOfOneCommandAreNotBothStdout) {
  write(file("run.json"),
        R"({"rows":[{"op":"allreduce","bytes":1,"system":"s","mode":"m","busbw_gb_s":1}]})");
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "-"}) {
    const ProgramResult result = sealane({"report", file("run.json"), "-o", name, "--json", "-"});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Outputs, TwoOfOneCommandAreTwoFiles) {
  const ProgramResult estimate = sealane(
      {"estimate", "--workload", "decode", "--json", file("same"), "--trace", file("./same")});
  EXPECT_EQ(estimate.exit_code, 2) << estimate.err;
  const ProgramResult run =
      emulated({"run", "--emulate", "--stats", file("same"), "--trace", file("same")});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(
      emulated({"run", "--emulate", "--stats", "/dev/null", "--trace", "/dev/null"}).exit_code, 0);
}

TEST_F(Outputs, OfEveryCommandKeepLinksAndRefuseEmptyNames) {
  write(file("real"), "earlier");
  fs::create_symlink("real", file("latest"));
  ASSERT_EQ(sealane({"estimate", "--workload", "decode", "--json", file("latest")}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(file("latest")));
  EXPECT_TRUE(contents(file("real")).starts_with("{"));
  for (const Words& words : std::vector<Words>{{"doctor", "--json", ""},
                                               {"bench", "seal", "--json", ""},
                                               {"bench", "copy", "--json", ""},
                                               {"bench", "allreduce", "--json", ""},
                                               {"estimate", "--list", "--json", ""},
                                               {"estimate", "--list", "--trace", ""},
                                               {"validate", "--json", ""},
                                               {"sim", "--json", ""},
                                               {"report", file("real"), "-o", ""},
                                               {"keygen", ""}}) {
    const ProgramResult result = sealane(words);
    EXPECT_EQ(result.exit_code, 2) << words[0] << ": " << result.err;
  }
}

TEST_F(Outputs, OfAnotherUsersLinkInASharedDirectoryAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  fs::permissions(directory_, fs::perms(01777));
  ASSERT_EQ(chown(directory_.c_str(), 65534, 65534), 0);
  write(file("victim"), "precious");
  fs::create_symlink("victim", file("stats.json"));
  ASSERT_EQ(lchown(file("stats.json").c_str(), 12345, 12345), 0);
  for (const ProgramOutput& one : kProgramOutputs) {
    Words words = one.words;
    words.push_back(file("stats.json"));
    EXPECT_EQ(emulated(words).exit_code, 1) << one.name;
    EXPECT_EQ(contents(file("victim")), "precious") << one.name;
  }
}

TEST_P(ProgramOutputs, OfAScriptThatCannotRunStayAsTheyWere) {
  write(file("earlier"), "earlier");
  write(file("script"), "#!" + file("nobody") + "\n");
  fs::permissions(file("script"), fs::perms(0755));
  Words words = GetParam().words;
  words.insert(words.end(), {file("earlier"), "--", file("script")});
  const ProgramResult result = sealane(words);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("its interpreter " + file("nobody")), std::string::npos) << result.err;
  EXPECT_EQ(contents(file("earlier")), "earlier");
}

TEST_P(ProgramOutputs, OfAScriptWithACarriageReturnStayAsTheyWere) {
  write(file("earlier"), "earlier");
  write(file("script"), "#!/bin/sh\r\ntrue\r\n");
  fs::permissions(file("script"), fs::perms(0755));
  Words words = GetParam().words;
  words.insert(words.end(), {file("earlier"), "--", file("script")});
  const ProgramResult result = sealane(words);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(contents(file("earlier")), "earlier");
}

// As `docker run -v FILE:FILE` has them.
TEST_P(ProgramOutputs, ThatAreMountsAreWrittenInPlace) {
  write(file("host"), "earlier");
  write(file("inside"), "");
  Words words = {"unshare",
                 "-rm",
                 "sh",
                 "-c",
                 "mount --bind \"$1\" \"$2\" || exit 77; shift 2; \"$@\"",
                 "sh",
                 file("host"),
                 file("inside"),
                 SEALANE_PROGRAM};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  words.push_back(file("inside"));
  words.insert(words.end(), program().begin(), program().end());
  const ProgramResult result = run_program(words);
  if (result.exit_code == 77 || result.err.starts_with("unshare:")) GTEST_SKIP() << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(contents(file("host")), "earlier");
  EXPECT_GT(contents(file("host")).size(), 20u);
  EXPECT_EQ(files(), 2u);
}

// The table is for people, who may look at its first lines alone.
TEST_F(Outputs, AreThereWhoeverReadsTheTable) {
  for (const char* where : {" | true", " > /dev/full"}) {
    const ProgramResult result = run_program(
        {"sh", "-c",
         "\"$0\" estimate --workload decode --draws 0 --json \"$1\"" + std::string(where),
         SEALANE_PROGRAM, file("e.json")});
    EXPECT_TRUE(contents(file("e.json")).starts_with("{")) << where << result.err;
    fs::remove(file("e.json"));
  }
}

TEST_P(ProgramOutputs, HaveTheProcesssNumberInTheirNames) {
  EXPECT_EQ(to(file("q%p.out")).exit_code, 0);
  ASSERT_EQ(files(), 1u);
  const std::string name = fs::directory_iterator(directory_)->path().stem().string();
  EXPECT_EQ(name.find_first_not_of("0123456789", 1), std::string::npos) << name;
}

// Who takes the runtime out of a program still wants the program.
TEST_P(ProgramOutputs, OfARuntimeThatIsSwitchedOffStayAsTheyWere) {
  if (std::string(GetParam().name) == "truth") return;  // the emulated GPU's own
  write(file("earlier"), "earlier");
  Words words = {SEALANE_PROGRAM};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  words.insert(words.end(), {file("earlier"), "--", "echo", "RAN"});
  const ProgramResult result =
      run_program(words, {.environment = {"SEALANE_DISABLE=1"}, .input = {}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "RAN\n");
  EXPECT_NE(result.err.find("SEALANE_DISABLE is set: nothing is watched"), std::string::npos)
      << result.err;
  EXPECT_EQ(contents(file("earlier")), "earlier");
}

TEST_F(Outputs, HaveNamesAsLongAsTheFileSystemAllows) {
  const std::string longest(NAME_MAX, 'a');
  const ProgramResult result =
      sealane({"estimate", "--workload", "decode", "--draws", "0", "--json", file(longest)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contents(file(longest)).starts_with("{"));
  EXPECT_EQ(files(), 1u);
  const ProgramResult longer =
      sealane({"estimate", "--workload", "decode", "--draws", "0", "--json", file(longest + "a")});
  EXPECT_EQ(longer.exit_code, 1) << longer.err;
  EXPECT_EQ(files(), 1u);
}

TEST_F(Outputs, KeepTheModeOfWhatTheyReplaceAndLeaveNothingBeside) {
  write(file("private"), "earlier");
  ASSERT_EQ(chmod(file("private").c_str(), 0600), 0);
  ASSERT_EQ(sealane({"estimate", "--workload", "decode", "--json", file("private")}).exit_code, 0);
  EXPECT_EQ(fs::status(file("private")).permissions(), fs::perms(0600));
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace sealane::test
