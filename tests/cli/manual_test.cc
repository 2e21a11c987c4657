// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do man pages and completions say what --help says, and does a real shell complete with them?

#include <gtest/gtest.h>
#include <stdlib.h>

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

namespace sealane::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

ProgramResult sealane(Words words) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  return run_program(words);
}

const std::vector<Words>& commands() {
  static const std::vector<Words> all = {{"doctor"},
                                         {"bench"},
                                         {"bench", "seal"},
                                         {"bench", "copy"},
                                         {"bench", "allreduce"},
                                         {"bench", "broadcast"},
                                         {"bench", "engines"},
                                         {"bench", "nccl"},
                                         {"bench", "ptx"},
                                         {"sim"},
                                         {"estimate"},
                                         {"validate"},
                                         {"report"},
                                         {"run"},
                                         {"record"},
                                         {"trial"},
                                         {"attach"},
                                         {"keygen"},
                                         {"env"},
                                         {"env", "nccl"},
                                         {"help"}};
  return all;
}

std::set<std::string> long_flags(const std::string& text) {
  static const std::regex flag("--[a-z][a-z-]*");
  return {std::sregex_token_iterator(text.begin(), text.end(), flag), std::sregex_token_iterator()};
}

TEST(Help, OfACommandIsWhatItsOwnFlagSays) {
  for (const Words& command : commands()) {
    Words asked = command;
    asked.insert(asked.begin(), "help");
    Words own = command;
    own.push_back("--help");
    const ProgramResult result = sealane(asked);
    EXPECT_EQ(result.exit_code, 0) << command.back();
    EXPECT_EQ(result.out, sealane(own).out) << command.back();
  }
  EXPECT_EQ(sealane({"help"}).out, sealane({"--help"}).out);
  const ProgramResult wrong = sealane({"help", "bench", "sael"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean 'seal'?"), std::string::npos) << wrong.err;
}

TEST(Help, ManPagesNameEveryFlagAndAreGoodRoff) {
  for (const Words& command : commands()) {
    Words asked = command;
    asked.insert(asked.begin(), "help");
    const std::string help = sealane(asked).out;
    asked.push_back("--man");
    const ProgramResult page = sealane(asked);
    ASSERT_EQ(page.exit_code, 0) << page.err;
    EXPECT_TRUE(page.out.starts_with(".TH SEALANE-")) << page.out;
    const std::string plain = std::regex_replace(page.out, std::regex("\\\\-"), "-");
    const auto told = long_flags(plain);
    for (const std::string& flag : long_flags(help)) {
      EXPECT_TRUE(told.contains(flag)) << command.back() << " " << flag;
    }
    const ProgramResult checked =
        run_program({"sh", "-c", "command -v groff >/dev/null || exit 0; groff -man -Tutf8 -ww -z"},
                    {.environment = {}, .input = page.out});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_EQ(checked.err, "") << command.back();
  }
}

TEST(Help, AManPageReadsLikeOne) {
  const std::string page =
      std::regex_replace(sealane({"help", "run", "--man"}).out, std::regex("\\\\-"), "-");
  EXPECT_NE(page.find("[\\fIOPTIONS\\fR] -- \\fIPROGRAM\\fR [\\fIARGUMENT...\\fR]"),
            std::string::npos)
      << page.substr(0, 400);
  const size_t examples = page.find(".SH EXAMPLES\n.in 2n\n.nf\nsealane run --observe");
  const size_t notes = page.find(".SH NOTES\nThe exit status is the program's");
  ASSERT_NE(examples, std::string::npos) << page;
  ASSERT_NE(notes, std::string::npos) << page;
  EXPECT_LT(examples, notes);
}

// On a terminal of 80 columns nothing is cut off: no line of a page is longer.
TEST(Help, ManPagesFit80Columns) {
  if (run_program({"sh", "-c", "command -v groff"}).exit_code != 0) GTEST_SKIP() << "no groff here";
  for (const Words& command : commands()) {
    Words asked = command;
    asked.insert(asked.begin(), "help");
    asked.emplace_back("--man");
    const ProgramResult shown = run_program({"groff", "-man", "-Tascii", "-P-cbou", "-rLL=78n"},
                                            {.environment = {}, .input = sealane(asked).out});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << command.back() << ": " << line;
    }
  }
}

// What bash offers behind the words.
std::set<std::string> completed(const std::string& line) {
  const ProgramResult result = run_program(
      {"bash", "--norc", "-c",
       "source <(\"$0\" help --completion bash); read -ra COMP_WORDS <<<\"$1\"; "
       "[ \"${1: -1}\" = ' ' ] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
       "_sealane; printf '%s\\n' \"${COMPREPLY[@]}\"",
       SEALANE_PROGRAM, line});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::set<std::string> words;
  std::istringstream in(result.out);
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

TEST(Help, BashCompletesCommandsFlagsValuesAndFiles) {
  const auto top = completed("sealane ");
  for (const char* name : {"doctor", "run", "bench", "help", "--version"}) {
    EXPECT_TRUE(top.contains(name)) << name;
  }
  EXPECT_EQ(completed("sealane est"), (std::set<std::string>{"estimate"}));
  EXPECT_EQ(completed("sealane run --pac"), (std::set<std::string>{"--pacing"}));
  EXPECT_EQ(completed("sealane run --pacing "), (std::set<std::string>{"model", "none"}));
  EXPECT_EQ(completed("sealane run --emulate --cc o"), (std::set<std::string>{"off", "on"}));
  EXPECT_EQ(completed("sealane bench se"), (std::set<std::string>{"seal"}));
  EXPECT_TRUE(completed("sealane bench seal --").contains("--record-bytes"));
  EXPECT_TRUE(completed("sealane run --stats /etc/passw").contains("/etc/passwd"));
  EXPECT_TRUE(completed("sealane run --workers ").empty());
  EXPECT_TRUE(completed("sealane run -- tru").contains("true"));
}

TEST(Help, WritesEverythingWherePackagesPutIt) {
  std::string name = (fs::temp_directory_path() / "sealane-help-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path share = name;
  ASSERT_EQ(sealane({"help", "--write", share.string()}).exit_code, 0);
  for (const char* file :
       {"man/man1/sealane.1", "man/man1/sealane-run.1", "man/man1/sealane-bench-seal.1",
        "bash-completion/completions/sealane", "zsh/site-functions/_sealane",
        "fish/vendor_completions.d/sealane.fish"}) {
    EXPECT_TRUE(fs::exists(share / file)) << file;
  }
  const ProgramResult syntax =
      run_program({"bash", "-n", (share / "bash-completion/completions/sealane").string()});
  EXPECT_EQ(syntax.exit_code, 0) << syntax.err;
  fs::remove_all(share);
}

}  // namespace
}  // namespace sealane::test
