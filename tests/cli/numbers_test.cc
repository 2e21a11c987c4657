// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are numbers that are none refused by every option, and are those that surprise explained?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using Words = std::vector<std::string>;

ProgramResult sealane(Words words) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  return run_program(words);
}

// Every option of a command that --help gives a number's type.
std::vector<std::string> number_options(Words command) {
  command.push_back("--help");
  const std::string help = sealane(command).out;
  static const std::regex option("(--[a-z-]+) (S|N|K|T|M|R|MS|US|GB|GB/S|0\\.\\.1)( |\\n)");
  std::vector<std::string> found;
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

TEST(Numbers, ThatAreNoneAreRefusedByEveryOption) {
  const struct {
    Words command;
    Words rest;
    size_t least;  // options there are
  } commands[] = {{{"estimate"}, {"--workload", "ddp"}, 20},
                  {{"bench", "copy"}, {}, 3},
                  {{"bench", "seal"}, {}, 1},
                  {{"bench", "allreduce"}, {}, 3},
                  {{"bench", "nccl"}, {}, 5},
                  {{"sim"}, {}, 1},
                  {{"run"}, {"--emulate", "--", "true"}, 8}};
  for (const auto& [command, rest, least] : commands) {
    const auto options = number_options(command);
    EXPECT_GE(options.size(), least) << command.back();
    for (const std::string& option : options) {
      for (const char* value : {"nan", "-inf", "1e999", ""}) {
        Words words = command;
        words.push_back(option + "=" + value);
        words.insert(words.end(), rest.begin(), rest.end());
        const ProgramResult result = sealane(words);
        EXPECT_EQ(result.exit_code, 2) << option << "=" << value << ": " << result.err;
        EXPECT_EQ(result.out, "") << option << "=" << value;
      }
    }
  }
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
  const std::string file = testing::TempDir() + "/numbers_test.json";
  const std::string page = testing::TempDir() + "/numbers_test.html";
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
  std::filesystem::remove(file);
  std::filesystem::remove(page);
}

}  // namespace
}  // namespace sealane::test
