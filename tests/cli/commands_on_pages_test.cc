// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane` know every command and option that a page shows?

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// README.md and everything below docs/ that people read.
std::vector<fs::path> pages() {
  std::vector<fs::path> out = {fs::path(SEALANE_SOURCE_DIR) / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(SEALANE_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") out.push_back(entry.path());
  }
  return out;
}

// What stands in code: between backticks, and line by line in blocks, where a backslash at the end
// joins two.
std::vector<std::string> code_of(const fs::path& page) {
  static const std::regex quoted("`([^`]+)`");
  std::vector<std::string> out;
  std::string text;
  std::string joined;
  bool block = false;
  std::ifstream in(page);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      block = !block;
    } else if (block && line.ends_with("\\")) {
      joined += line.substr(0, line.size() - 1);
    } else if (block) {
      out.push_back(joined + line);
      joined.clear();
    } else {
      text += line + "\n";
    }
  }
  for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) {
    out.push_back((*at)[1]);
  }
  return out;
}

// The words behind `sealane` up to what ends a command: a pipe, a comment, the program it starts.
Words command_in(const std::string& code) {
  static const std::regex program("(^|[\\s=(])(build/bin/)?sealane\\s+(.*)");
  std::smatch match;
  const std::string line = std::regex_replace(code, std::regex("\n"), " ");
  Words out;
  if (!std::regex_search(line, match, program)) return out;
  std::istringstream words(match[3].str());
  for (std::string word; words >> word;) {
    if (word == "--" || word == "|" || word == ">" || word.starts_with("#")) break;
    out.push_back(word);
  }
  return out;
}

// What `sealane A B --help` says; empty if there is no such command.
const std::string& help_of(const Words& command) {
  static std::map<Words, std::string> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  Words words = {SEALANE_PROGRAM};
  std::string usage = "Usage: sealane";
  for (const std::string& word : command) {
    words.push_back(word);
    usage += " " + word;
  }
  words.push_back("--help");
  const std::string out = run_program(words).out;
  return known[command] = out.find(usage + " ") != std::string::npos ? out : "";
}

// `--print-env=file`, `--json` and `-o` without what follows them, "" for anything else.
std::string option_in(const std::string& word) {
  static const std::regex option("\\[?(--[a-z][a-z_-]*|-[a-z])([=\\],;.].*)?");
  std::smatch match;
  return std::regex_match(word, match, option) ? match[1].str() : "";
}

bool is_name(const std::string& word) {
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

TEST(CommandsOnPages, AreThoseThereAre) {
  size_t options = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& code : code_of(page)) {
      const Words words = command_in(code);
      Words command;  // as deep as there are subcommands of the name
      for (const std::string& word : words) {
        Words deeper = command;
        deeper.push_back(word);
        if (command.size() >= 2 || !is_name(word) || help_of(deeper).empty()) break;
        command = deeper;
      }
      const bool is_command = code.starts_with("sealane ") && !words.empty() && is_name(words[0]);
      EXPECT_FALSE(is_command && command.empty()) << page.string() << ": " << code;
      if (command.empty()) continue;
      for (size_t i = command.size(); i < words.size(); ++i) {
        const std::string option = option_in(words[i]);
        if (option.empty()) continue;
        ++options;
        const std::regex known("(^|[\\s,])" + option + "([\\s,{\\[]|$)");
        EXPECT_TRUE(std::regex_search(help_of(command), known))
            << page.string() << ": " << code << ": no " << option;
      }
    }
  }
  EXPECT_GT(options, 60u);
}

}  // namespace
}  // namespace sealane::test
