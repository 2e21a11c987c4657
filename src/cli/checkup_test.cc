// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/checkup.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace sealane::cli {
namespace {

Checkup example() {
  Checkup checkup;
  checkup.findings = {
      {"CPU", "engine", Verdict::ok, "fast", ""},
      {"CPU", "self-test", Verdict::fail, "wrong answer", "do not seal on this machine"},
      {"System", "swap", Verdict::warn, "on", "turn it off"},
  };
  checkup.outlook = "Good things.";
  return checkup;
}

TEST(Checkup, TextIsAlignedUnderItsAreas) {
  EXPECT_EQ(to_text(example(), {}),
            "CPU\n"
            "  ok    engine     fast\n"
            "  fail  self-test  wrong answer\n"
            "                   -> do not seal on this machine\n"
            "\n"
            "System\n"
            "  warn  swap       on\n"
            "                   -> turn it off\n"
            "\n"
            "What to expect\n"
            "  Good things.\n"
            "\n"
            "1 ok, 1 warn, 1 fail\n");
}

TEST(Checkup, LongTextStaysWithinTheColumnsAndLosesNoWord) {
  Checkup checkup = example();
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word" + std::to_string(i) + ' ';
  checkup.findings[0].detail = words;
  checkup.findings[1].advice = words;
  checkup.outlook = words;
  for (const size_t columns : {60, 80, 100}) {
    const std::string text = to_text(checkup, {.columns = columns});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
    for (int i = 0; i < 200; ++i) {
      EXPECT_NE(text.find("word" + std::to_string(i)), std::string::npos);
    }
  }
}

TEST(Checkup, ColourOnlyIfAskedFor) {
  EXPECT_EQ(to_text(example(), {}).find('\x1b'), std::string::npos);
  const std::string text = to_text(example(), {.columns = 80, .colour = true});
  EXPECT_NE(text.find("\x1b[31mfail\x1b[0m  self-test"), std::string::npos);
}

TEST(Checkup, JsonHasEveryFindingAndTheSums) {
  const nlohmann::json json = to_json(example());
  ASSERT_EQ(json["checks"].size(), 3u);
  EXPECT_EQ(json["checks"][1]["status"], "fail");
  EXPECT_EQ(json["checks"][1]["advice"], "do not seal on this machine");
  EXPECT_EQ(json["summary"]["ok"], 1);
  EXPECT_EQ(json["summary"]["warn"], 1);
  EXPECT_EQ(json["summary"]["fail"], 1);
}

}  // namespace
}  // namespace sealane::cli
