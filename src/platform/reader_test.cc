// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sealane {
namespace {

std::string shipped_text() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                    "../share/sealane/platforms/h100-nvl-tdx.toml";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The shipped file with the first `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = shipped_text();
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the file has no " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

// The shipped file with the rest of the line from the first `from` on replaced.
std::string changed_line(const std::string& from, const std::string& to) {
  const std::string text = shipped_text();
  const size_t at = text.find(from);
  if (at == std::string::npos) return changed(from, to);
  return changed(text.substr(at, text.find('\n', at) - at), to);
}

std::string error_of(const std::string& text) {
  const auto platform = parse_platform(text, "x.toml");
  if (platform) return "accepted";
  EXPECT_EQ(platform.error().kind, ErrorKind::usage);
  EXPECT_EQ(platform.error().message.find('\n'), std::string::npos);
  return platform.error().message;
}

TEST(PlatformFile, ReadsEveryParameterWithItsSource) {
  const auto platform = parse_platform(shipped_text(), "x.toml");
  ASSERT_TRUE(platform) << platform.error().message;
  EXPECT_EQ(platform->name, "h100-nvl-tdx");
  EXPECT_DOUBLE_EQ(platform->to_device.cc.toll_us, 21.95);
  EXPECT_DOUBLE_EQ(platform->to_host.off.latency_us, 1.94);
  EXPECT_EQ(platform->cc.message_bytes_max, 1u << 20);
  EXPECT_TRUE(platform->cc.copies_block);
  EXPECT_EQ(platform->cc.contexts_max, 18u);
  ASSERT_FALSE(platform->parameters.empty());
  EXPECT_EQ(platform->parameters.front().key, "to_device.off.latency_us");
  EXPECT_EQ(platform->parameters.front().value, "2.05");
  for (const Parameter& parameter : platform->parameters) EXPECT_FALSE(parameter.source.empty());
}

TEST(PlatformFile, ErrorsNameTheLine) {
  // Line 9 is the first parameter, below [to_device.off] on line 8.
  EXPECT_EQ(
      error_of(changed_line("latency_us = [2.05, ", "latency_us = 2.05")),
      "x.toml:10: to_device.off.latency_us: must be [value, \"source\"] or [value, \"source\", "
      "spread]");
  EXPECT_EQ(error_of(changed_line("latency_us = [2.05, ", "latency_us = [2.05, \" \"]")),
            "x.toml:10: to_device.off.latency_us: the source must be a line of text");
  EXPECT_EQ(error_of(changed("latency_us = [2.05", "latency_us = [-2.05")),
            "x.toml:10: to_device.off.latency_us: must be from 0 to 1000000, not -2.05");
  EXPECT_EQ(error_of(changed("latency_us = [2.05", "latency_us = [nan")),
            "x.toml:10: to_device.off.latency_us: must be from 0 to 1000000, not nan");
  EXPECT_EQ(error_of(changed("latency_us = [2.05", "latency_us = [\"2.05\"")),
            "x.toml:10: to_device.off.latency_us: must be a number");
  EXPECT_EQ(error_of(changed("latency_us = [2.05", "latency_ms = [2.05")),
            "x.toml:10: unknown key 'to_device.off.latency_ms'");
  EXPECT_EQ(error_of(changed_line("latency_us = [2.05", "")),
            "x.toml:1: missing key 'to_device.off.latency_us'");
  EXPECT_EQ(error_of(changed("[guard]", "[shield]")).substr(0, 7), "x.toml:");
}

TEST(PlatformFile, WrongTypesAndAbsurdValues) {
  EXPECT_NE(error_of(changed("message_bytes_max = [1048576", "message_bytes_max = [2097152"))
                .find("from 4096 to 1048576, not 2097152"),
            std::string::npos);
  EXPECT_NE(error_of(changed("cores = [64", "cores = [6.4")).find("must be a whole number"),
            std::string::npos);
  EXPECT_NE(error_of(changed("cores = [64", "cores = [0")).find("not 0"), std::string::npos);
  EXPECT_NE(
      error_of(changed("copies_block = [true", "copies_block = [1")).find("must be true or false"),
      std::string::npos);
  EXPECT_NE(error_of(changed("link_gb_per_s = [43.09", "link_gb_per_s = [0.0"))
                .find("to_device.off.link_gb_per_s"),
            std::string::npos);
  EXPECT_EQ(error_of(changed("name = \"h100-nvl-tdx\"", "name = 3")),
            "x.toml:6: name: must be a line of text in quotes");
}

TEST(PlatformFile, NotToml) {
  EXPECT_EQ(error_of("name = \n").substr(0, 9), "x.toml:1:");
  EXPECT_EQ(error_of("a = 1\na = 2\n").substr(0, 9), "x.toml:2:");
  EXPECT_EQ(error_of(""), "x.toml:1: missing key 'name'");
}

// Nor may it be so deep that whoever reads it has no stack left.
TEST(PlatformFile, KeysInKeysWithoutEndAreRefused) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  const std::string said = "x.toml:2: more than 32 dots in a line";
  EXPECT_EQ(error_of("# ....................................\n" + key + " = 1\n"), said);
  EXPECT_EQ(error_of("b = 1\n[" + key + "]\n"), said);
  EXPECT_EQ(error_of("b = 1\nc = { " + key + " = 1 }\n"), said);
  std::string nested = "a = ";  // as deep as it gets within the bounds
  for (int i = 0; i < 400; ++i) nested += "[\n{ a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = ";
  EXPECT_EQ(error_of(nested).substr(0, 7), "x.toml:");
}

TEST(PlatformFile, EveryParameterIsRequired) {
  const std::string text = shipped_text();
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find(" = [") == std::string::npos) continue;
    std::string without = text;
    without.erase(without.find(line), line.size());
    EXPECT_NE(error_of(without).find("missing key"), std::string::npos) << line;
  }
}

RC_GTEST_PROP(PlatformFile, DamagedFilesAreRefusedOrRead, (unsigned char byte)) {
  std::string text = shipped_text();
  const auto at = *rc::gen::inRange<size_t>(0, text.size());
  text[at] = static_cast<char>(byte);
  const auto platform = parse_platform(text, "x.toml");
  if (!platform) RC_ASSERT(platform.error().message.starts_with("x.toml:"));
}

class FindPlatform : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("sealane-platforms-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "mine.toml") << changed("\"h100-nvl-tdx\"", "\"mine\"");
    setenv("SEALANE_PLATFORMS", directory_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("SEALANE_PLATFORMS");
    std::filesystem::remove_all(directory_);
  }
  std::filesystem::path directory_;
};

TEST_F(FindPlatform, ByNameInBothDirectories) {
  const auto mine = find_platform("mine");
  ASSERT_TRUE(mine) << mine.error().message;
  EXPECT_EQ(mine->name, "mine");
  EXPECT_TRUE(find_platform("h100-sev"));
}

TEST_F(FindPlatform, ByPath) {
  EXPECT_TRUE(find_platform((directory_ / "mine.toml").string()));
  const auto gone = find_platform("./gone.toml");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message, "./gone.toml: cannot be read; is it a platform file?");
  EXPECT_FALSE(find_platform(directory_.string() + "/"));
}

TEST_F(FindPlatform, UnknownNameListsWhatThereIs) {
  const auto platform = find_platform("h1000");
  ASSERT_FALSE(platform);
  EXPECT_EQ(platform.error().message,
            "unknown platform 'h1000'; there are: b200-tdisp, b200-tdx, h100-genoa, h100-milan, "
            "h100-nvl-aesni, h100-nvl-tdx, h100-sev, h100-sxm, h100-tdx, mine");
  EXPECT_FALSE(find_platform(""));
}

}  // namespace
}  // namespace sealane
