// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do tables line up, and do files appear whole or not at all?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "report/output.h"
#include "report/table.h"

namespace sealane::report {
namespace {

namespace fs = std::filesystem;

TEST(Table, LinesUpNumbersRightAndWordsLeft) {
  Table table({{"engine", Align::left}, {"GB/s"}});
  table.add_row({"ipsec-mb", "12.3"});
  table.add_rule();
  table.add_row({"µ", "4"});
  EXPECT_EQ(table.text(),
            "engine    GB/s\n"
            "--------  ----\n"
            "ipsec-mb  12.3\n"
            "--------  ----\n"
            "µ            4\n");
}

Table wide_table() {
  Table table({{"what was copied", Align::left}, {"vaes-512"}, {"of memcpy"}, {"spread"}});
  table.add_row({"weights of the first layer", "12.34", "0.62", "3 %"});
  return table;
}

TEST(Table, OfWhichEnoughFitsIsAsWideAsItsContent) {
  const std::string wide = wide_table().text(kAnyWidth);
  EXPECT_EQ(wide,
            "what was copied             vaes-512  of memcpy  spread\n"
            "--------------------------  --------  ---------  ------\n"
            "weights of the first layer     12.34       0.62     3 %\n");
  EXPECT_EQ(wide_table().text(55), wide);
}

TEST(Table, ThatIsTooWideBreaksItsTitlesFirst) {
  EXPECT_EQ(wide_table().text(54),
            "                            vaes-      of\n"
            "what was copied               512  memcpy  spread\n"
            "--------------------------  -----  ------  ------\n"
            "weights of the first layer  12.34    0.62     3 %\n");
}

TEST(Table, ThatIsStillTooWideBreaksItsTextsAndNotItsNumbers) {
  EXPECT_EQ(wide_table().text(40),
            "                     vaes-     of\n"
            "what was copied        512 memcpy spread\n"
            "-------------------- ----- ------ ------\n"
            "weights of the first 12.34   0.62    3 %\n"
            "layer\n");
}

TEST(Table, ThatFitsInNoWaySaysWhatIsMissing) {
  EXPECT_EQ(wide_table().text(32),
            "                    vaes-     of\n"
            "what was copied       512 memcpy\n"
            "------------------- ----- ------\n"
            "weights of the      12.34   0.62\n"
            "first layer\n"
            "Left out, to fit 32 columns:\n"
            "spread. --json has all.\n");
  for (size_t limit = 40; limit > 30; --limit) {
    const std::string text = wide_table().text(limit);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), limit) << text;
  }
}

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sealane-output-XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ / name; }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static std::string content(const std::string& name) {
    std::ostringstream out;
    out << std::ifstream(name).rdbuf();
    return out.str();
  }

  fs::path directory_;
};

TEST_F(OutputTest, ReplacesTheFileAndLeavesNothingBeside) {
  ASSERT_TRUE(write_file(path("a.json"), "old").ok());
  ASSERT_TRUE(write_json(path("a.json"), {{"x", 1}}).ok());
  EXPECT_EQ(nlohmann::json::parse(content(path("a.json"))), nlohmann::json({{"x", 1}}));
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, FileHasTheModeTheUserWouldExpect) {
  const mode_t old = umask(027);
  ASSERT_TRUE(write_file(path("a"), "x").ok());
  umask(old);
  struct stat status;
  ASSERT_EQ(stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(OutputTest, RefusesWhatCannotBeWrittenAndLeavesNothing) {
  for (const std::string& target : {path("missing/a.json"), directory_.string()}) {
    EXPECT_FALSE(check_writable(target).ok()) << target;
    const Status status = write_file(target, "x");
    ASSERT_FALSE(status.ok()) << target;
    EXPECT_EQ(status.error().kind, ErrorKind::io);
    EXPECT_NE(status.error().message.find(target), std::string::npos);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputTest, CheckingWritesNothing) {
  EXPECT_TRUE(check_writable(path("a")).ok());
  EXPECT_TRUE(check_writable("-").ok());
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputTest, WritesToDevicesWithoutReplacingThem) {
  EXPECT_TRUE(check_writable("/dev/null").ok());
  EXPECT_TRUE(write_file("/dev/null", "x").ok());
  struct stat status;
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_F(OutputTest, SaysWhenTheDiskIsFull) {
  const Status status = write_file("/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace sealane::report
