// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are numbers that are none refused by every option, and are those that surprise explained?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/scratch.h"

namespace sealane::test {
namespace {

using Words = std::vector<std::string>;

ProgramResult sealane(Words words) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  return run_program(words);
}

// Calls `visit` with every command that --help lists, and what its own --help says.
void walk(const Words& command,
          const std::function<void(const Words&, const std::string&)>& visit) {
  Words words = command;
  words.push_back("--help");
  const std::string help = sealane(words).out;
  visit(command, help);
  const size_t list = help.find("\nSubcommands:\n");
  if (list == help.npos) return;
  const std::string listed = help.substr(list, help.find("\n\n", list) - list);
  static const std::regex name("\n  ([a-z_]+)");
  for (std::sregex_iterator at(listed.begin(), listed.end(), name), end; at != end; ++at) {
    words.back() = (*at)[1];
    walk(words, visit);
  }
}

// Does an option take a number? By the type that --help gives it. A type that is on neither list
// is a failure, so that no new one is passed over.
bool takes_a_number(const std::string& option, const std::string& type) {
  static const std::set<std::string> numbers = {
      "N", "N,...", "N[K|M|G]", "BYTES", "S",    "SECONDS", "M",   "MS",   "US", "K",
      "T", "R",     "GB",       "P",     "GB/S", "0..1",    "0|1", "A..B", "X.Y"};
  static const std::set<std::string> texts = {
      "FILE", "FILE[:FILE]", "DIR", "PATH",     "R.html", "NAME",         "NAME,...", "NAME[,NAME]",
      "W",    "P,...",       "HOW", "ACTION@N", "RULE",   "memory,races", "REGEX",    "PART,..."};
  if (option == "--platform" || option == "--policy" || option == "--model") return false;
  if (numbers.contains(type)) return true;
  const bool one_of_words = type.find('|') != type.npos;
  EXPECT_TRUE(texts.contains(type) || one_of_words) << option << " " << type << ": a number?";
  return false;
}

TEST(Numbers, ThatAreNoneAreRefusedByEveryOption) {
  std::string folder = testing::TempDir() + "/numbers_test.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  // What a command cannot do without, or would miss before it looks at a number.
  const std::map<std::string, Words> rest = {
      {"estimate", {"--workload", "ddp"}},
      {"run", {"--emulate", "--", "true"}},
      {"record", {"-o", folder + "/trace", "--emulate", "--", "true"}},
      {"trial", {"-o", folder + "/trial", "--emulate", "--", "true"}},
      {"attach", {std::to_string(getpid())}},
      {"keygen", {folder + "/keys"}},
      {"nccl", {"--hosts"}}};
  std::map<std::string, size_t> found;  // how many by command
  walk({}, [&](const Words& command, const std::string& help) {
    static const std::regex line("\n  (-[^ \n]+) ([^ \n]+)");
    for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at) {
      std::string option = (*at)[1];
      option.erase(0, option.find(',') + 1);  // of both its names the long one
      if (!takes_a_number(option, (*at)[2])) continue;
      ++found[command.back()];
      for (const std::string value : {"nan", "-inf", "1e999", ""}) {
        Words words = command;
        if (option.starts_with("--") && !value.empty()) {
          words.push_back(option + "=" + value);
        } else {
          words.insert(words.end(), {option, value});
        }
        const auto more = rest.find(command.back());
        if (more != rest.end()) words.insert(words.end(), more->second.begin(), more->second.end());
        const ProgramResult result = sealane(words);
        const std::string which = command.back() + " " + option + "=" + value + ": " + result.err;
        EXPECT_EQ(result.exit_code, 2) << which;
        EXPECT_EQ(result.out, "") << which;
        // For its number, and for nothing else.
        EXPECT_TRUE(result.err.starts_with("sealane: " + option + ": ")) << which;
      }
    }
  });
  for (const char* command :
       {"seal", "copy", "engines", "ptx", "nccl", "allreduce", "reduce_scatter", "all_gather",
        "broadcast", "sim", "estimate", "validate", "run", "record", "trial", "attach", "keygen"}) {
    EXPECT_GE(found[command], 1u) << command;
  }
  EXPECT_GE(found["estimate"], 30u);
  EXPECT_GE(found["trial"], 10u);
  std::filesystem::remove_all(folder);
}

TEST(Numbers, OfSeedsAreWholeAndFit) {
  for (const char* value : {"", "-5", "1.5", "99999999999999999999999", "0x1"}) {
    EXPECT_EQ(sealane({"estimate", "--workload", "decode", "--seed", value}).exit_code, 2) << value;
    EXPECT_EQ(sealane({"sim", "--seed", value}).exit_code, 2) << value;
  }
}

// A trace with one line of its own behind a context, a stream and an event.
ProgramResult estimate_trace(const std::string& numbers, const std::string& line) {
  const std::string file = testing::TempDir() + "/numbers_test." + std::to_string(getpid());
  std::string text =
      "sealane-trace 1\ncreate context cN tN\ncreate stream sN cN blocking tN\n"
      "create event eN tN\nrecord eN sN tN\n" +
      line + "\n";
  for (size_t at; (at = text.find('N')) != text.npos;) text.replace(at, 1, numbers);
  std::ofstream(file) << text;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::string limit;  // a sanitizer needs more addresses
#else
  const std::string limit = "ulimit -v 4000000; ";
#endif
  const ProgramResult result = run_program(
      {"sh", "-c", limit + "exec \"$0\" estimate \"$1\" --draws 0", SEALANE_PROGRAM, file});
  std::filesystem::remove(file);
  return result;
}

TEST(Numbers, OfATraceAreBoundedInSize) {
  for (const char* bytes : {"9223372036854775807", "1000000000000000000", "10000000000001"}) {
    for (const std::string line : {"copy h2d sN 0x1000 0x7f00 ", "copy d2h sN 0x7f00 0x1000 "}) {
      const ProgramResult result = estimate_trace("1", line + bytes + " pinned async tN");
      EXPECT_EQ(result.exit_code, 2) << result.out;
      EXPECT_NE(result.err.find("an amount beyond all measure"), std::string::npos) << result.err;
    }
  }
}

// A clock of 64 bits must be able to count it.
TEST(Numbers, OfATraceAddUpToATime) {
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    lines += "launch sN 1000000000000000000 tN +1000000000000000000\n";
  }
  const ProgramResult result = estimate_trace("1", lines);
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("the program takes longer than 31 years"), std::string::npos)
      << result.err;
  const ProgramResult most = estimate_trace("1", "launch sN 1000000000000000000 tN");
  EXPECT_EQ(most.exit_code, 0) << most.err;
}

TEST(Numbers, OfATraceAreNamesHoweverLarge) {
  const std::string line = "copy h2d sN 0x1000 0x7f00 65536 pinned async tN";
  const ProgramResult small = estimate_trace("1", line);
  const ProgramResult large = estimate_trace("4000000000", line);
  EXPECT_EQ(small.exit_code, 0) << small.err;
  EXPECT_EQ(large.exit_code, 0) << large.err << large.signal;
  EXPECT_EQ(large.out, small.out);
}

TEST(Numbers, BelowNothingAreExplained) {
  const ProgramResult result = sealane({"estimate", "--workload", "load"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const bool negative = std::regex_search(result.out, std::regex("-[0-9]{2,}\\.[0-9] %"));
  ASSERT_TRUE(negative) << "find another workload for this test\n" << result.out;
  EXPECT_NE(result.out.find("lose less than nothing"), std::string::npos) << result.out;
  const ProgramResult usual = sealane({"estimate", "--workload", "decode"});
  EXPECT_EQ(usual.out.find("lose less than nothing"), std::string::npos) << usual.out;
}

TEST(Numbers, OfThisMachineAreThisMachines) {
  const ProgramResult result = sealane({"estimate", "--platform", "local", "--workload", "ddp"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      result.out, found, std::regex("seals by ([0-9]+) cores? per machine at ([0-9.]+) GB/s")))
      << result.out;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  EXPECT_LE(std::stol(found[1]), std::max(1L, cores - 1));
  EXPECT_LE(found[2].length(), 6) << found[2];
}

// What a file says about itself is shown, but does not steer the terminal.
TEST(Text, OfAFileReachesTheTerminalWithoutItsControlCharacters) {
  const Scratch scratch;
  const std::string file = scratch.file("rows.json");
  const std::string page = scratch.file("page.html");
  const std::string evil = "\\u001b[2J\\u001b]0;owned\\u0007\\u009b31m\\r\\u202edetrevni";
  std::ofstream(file) << R"({"rows":[{"op":"allreduce)" << evil
                      << R"(","bytes":65536,"system":"s","mode":")" << evil
                      << R"(","busbw_gb_s":2.5,"time_us":26.0}]})";
  const ProgramResult result = sealane({"report", file, "-o", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("allreduce"), std::string::npos) << result.out;
  for (const char c : result.out) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n') << static_cast<int>(c);
    EXPECT_NE(c, '\x7f');
  }
  EXPECT_EQ(result.out.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(result.out.find("\xe2\x80\xae"), std::string::npos);
  const ProgramResult missing = sealane({"report",
                                         "/no\x1b[31m\xc2\x9b"
                                         "such",
                                         "-o", page});
  EXPECT_EQ(missing.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(missing.err.find("\xc2\x9b"), std::string::npos);
}

// Nor does what variables and NCCL's log say.
TEST(Text, OfACheckupReachesTheTerminalWithoutItsControlCharacters) {
  const std::string log = testing::TempDir() + "/numbers_test.log." + std::to_string(getpid());
  const std::string evil = "\x1b[2J\x1b]0;owned\x07\xc2\x9b\x33\x31m";
  std::ofstream(log) << "NCCL INFO Using network " << evil << "\n";
  ProgramOptions options;
  options.environment = {"NCCL_NET=" + evil, "NCCL_NET_PLUGIN=sealane", "SEALANE_KEY_FILE=" + evil};
  const ProgramResult result =
      run_program({SEALANE_PROGRAM, "doctor", "--nccl", "--log", log}, options);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.out.find("a rank uses '?[2J"), std::string::npos) << result.out;
  for (const char c : result.out + result.err) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n') << static_cast<int>(c);
  }
  EXPECT_EQ(result.out.find("\xc2\x9b"), std::string::npos);
  std::filesystem::remove(log);
}

// Nor do a platform's file and the names of files.
TEST(Text, OfAPlatformReachesTheTerminalWithoutItsControlCharacters) {
  namespace fs = std::filesystem;
  const std::string evil = "e\x1b[2J\xc2\x9b\x31m";
  const fs::path directory = testing::TempDir() + "/numbers_test.d." + std::to_string(getpid());
  fs::create_directories(directory / "gone");
  std::ifstream known(SEALANE_SOURCE_DIR "/platforms/h100-tdx.toml");
  std::ofstream platform(directory / (evil + ".toml"));
  for (std::string line; std::getline(known, line);) {  // every source ends in them
    const size_t end = line.rfind("\"]");
    platform << (end == std::string::npos ? line : line.insert(end, "\\u001b[2J\\u009b1m")) << "\n";
  }
  platform.close();
  const std::string trace = (directory / (evil + ".trace")).string();
  std::ofstream(trace) << "sealane-trace 1\ncreate context c1 t1\n"
                          "create stream s1 c1 nonblocking t1\n"
                          "copy h2d s1 0x1000 0x7f00 65536 pinned async t1\n";
  const std::string gone = (directory / "gone").string();
  const auto run_into = [&](const char* flag) {  // a directory that is gone when it is written
    return std::vector<std::string>{"run", "--emulate",
                                    flag,  gone + "/" + evil,
                                    "--",  "sh",
                                    "-c",  "rmdir \"$0\"; \"$1\" roundtrip; mkdir \"$0\"",
                                    gone,  SEALANE_EMU_PROBE};
  };
  ProgramOptions options;
  options.environment = {"SEALANE_PLATFORMS=" + directory.string()};
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
           {"estimate", "--list"},
           {"estimate", "--workload", "ddp", "--draws", "0", "--platform", evil},
           {"sim", "--seed", "1", "--ops", "10", "--platform", evil},
           {"sim", "--seed", "0", "--platform", evil, trace},
           {"sim", "--hits", "--platform", evil, trace},
           {"sim", "--steps", "--platform", evil},
           run_into("--stats"),
           run_into("--truth")}) {
    words.insert(words.begin(), SEALANE_PROGRAM);
    const ProgramResult result = run_program(words, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string said = result.out + result.err;
    EXPECT_NE(said.find("e?[2J"), std::string::npos) << said;
    EXPECT_EQ(said.find('\x1b'), std::string::npos) << words[1] << words[2];
    EXPECT_EQ(said.find("\xc2\x9b"), std::string::npos) << words[1] << words[2];
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace sealane::test
