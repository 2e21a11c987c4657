// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what every command prints fit the terminal it is printed on, and do programs get the same as
// JSON? Walks the whole program: a command that is new is in one of the lists below, or a test
// fails.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kColumns = 80;

// What is walked: every command that is quick, with flags that make it so.
std::vector<Words> quick_commands() {
  const Words small = {"-b", "64K", "-e", "64K", "-n", "1"};
  std::vector<Words> out = {
      {"doctor"},
      {"doctor", "--nccl"},
      {"bench", "seal", "--seconds", "0.1", "--where", "l2"},
      {"bench", "copy", "--examples", "layer_swap", "--policies", "off", "--rounds", "1",
       "--dilation", "1"},
      {"bench", "nccl", "-b", "64K", "-e", "64K", "-n", "1", "-w", "0", "--rounds", "1"},
      {"bench", "allreduce", "--tamper"},
      {"estimate", "--list"},
      {"estimate", "--workload", "decode"},
      {"estimate", "--workload", "ddp"},
      {"estimate", "--workload", "ddp", "--fabric", "nccl"},
      {"sim", "--seeds", "0..3", "--ops", "200"},
      {"sim", "--steps", "--platform", "h100-tdx"},
      {"sim", "--hits", "--platform", "h100-tdx"},
      {"run", "--emulate", "--observe", "--", SEALANE_EMU_PROBE, "roundtrip"},
      {"run", "--emulate", "--stats", "/dev/null", "--", SEALANE_EMU_PROBE, "roundtrip"},
      {"record", "--emulate", "-o", "/dev/null", "--", SEALANE_EMU_PROBE, "roundtrip"},
      {"env", "nccl"},
      {"help"},
  };
  for (const char* op : {"allreduce", "reduce_scatter", "all_gather", "broadcast"}) {
    out.push_back({"bench", op});
    out.back().insert(out.back().end(), small.begin(), small.end());
  }
  return out;
}

// What is not: it takes seconds (tables of theirs are report::Table's, too), prints nothing but
// names of files, or prints what `run --stats` does.
const std::set<std::string> kNotWalked = {"validate", "bench ptx", "bench engines", "trial",
                                          "report",   "keygen",    "attach"};

// What prints no figures, or (a program's stdout is its own) has --stats.
const std::set<std::string> kNoJson = {"run", "record", "keygen", "env nccl", "help"};

size_t columns_of(const std::string& line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void expect_fits(const std::string& text, size_t columns, const std::string& command) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns_of(line), columns) << command << ": " << line;
  }
}

std::string joined(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

Words sealane(Words words) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  return words;
}

// The names below "Subcommands:" of a help.
std::vector<std::string> commands_of(const Words& words) {
  Words help = sealane(words);
  help.emplace_back("--help");
  std::istringstream lines(run_program(help).out);
  std::vector<std::string> names;
  bool below = false;
  for (std::string line; std::getline(lines, line);) {
    if (below && line.empty()) break;
    if (below && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    below = below || line == "Subcommands:";
  }
  return names;
}

TEST(Terminal, EveryCommandIsWalkedOrSaysWhyNot) {
  std::set<std::string> known = kNotWalked;
  for (const Words& words : quick_commands()) {
    known.insert(words[0]);
    if (words.size() > 1) known.insert(words[0] + " " + words[1]);
  }
  for (const std::string& name : commands_of({})) {
    EXPECT_TRUE(known.contains(name)) << name;
    for (const std::string& inner : commands_of({name})) {
      EXPECT_TRUE(known.contains(name + " " + inner)) << name << " " << inner;
    }
  }
}

std::string help_of(Words words) {
  words.emplace_back("--help");
  return run_program(sealane(words)).out;
}

TEST(Terminal, EveryCommandThatPrintsFiguresHasThemForPrograms) {
  for (const std::string& name : commands_of({})) {
    const std::vector<std::string> inner = commands_of({name});
    std::vector<Words> leaves;
    for (const std::string& one : inner) leaves.push_back({name, one});
    if (inner.empty()) leaves.push_back({name});
    for (const Words& leaf : leaves) {
      const bool has_json = help_of(leaf).find("--json FILE") != std::string::npos;
      EXPECT_NE(has_json, kNoJson.contains(joined(leaf))) << joined(leaf);
    }
  }
}

// The same with JSON to a file, if the command has it; of `run` that is --stats.
Words with_json(Words words, const std::string& path) {
  if (words[0] == "run") {
    std::erase(words, "--stats");
    std::erase(words, "/dev/null");
    words.insert(words.begin() + 1, {"--stats", path});
  } else if (!kNoJson.contains(words[0]) && words[0] != "env") {
    words.insert(words.end(), {"--json", path});
  }
  return words;
}

nlohmann::json parsed(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

TEST(Terminal, WhatACommandPrintsFitsEightyColumnsAndIsThereForPrograms) {
  const ProgramOptions narrow{.environment = {"COLUMNS=80"}, .input = {}};
  const std::string path = testing::TempDir() + "/sealane-terminal-" + std::to_string(getpid());
  for (const Words& plain : quick_commands()) {
    const Words words = with_json(plain, path);
    const ProgramResult result = run_program(sealane(words), narrow);
    if (words != plain) {
      const nlohmann::json json = parsed(path);
      EXPECT_TRUE(json.is_object() || json.is_array()) << joined(words);
      EXPECT_FALSE(json.empty()) << joined(words);
    }
    std::filesystem::remove(path);
    // Whether NCCL seals here is not the question.
    if (joined(plain) != "doctor --nccl") {
      EXPECT_EQ(result.exit_code, 0) << joined(words) << ": " << result.err;
    }
    EXPECT_FALSE(result.out.empty() && result.err.empty()) << joined(words);
    expect_fits(result.out, kColumns, joined(words));
    if (result.exit_code == 0) expect_fits(result.err, kColumns, joined(words));
  }
}

TEST(Terminal, JsonOnStandardOutputIsThereAlone) {
  for (Words words : quick_commands()) {
    if (words.size() == 1) continue;
    const bool quick = words[1] == "--list" || words[1] == "--seeds" || words[1] == "allreduce";
    if (!quick) continue;
    words.insert(words.end(), {"--json", "-"});
    const ProgramResult result = run_program(sealane(words));
    EXPECT_EQ(result.exit_code, 0) << joined(words);
    EXPECT_FALSE(nlohmann::json::parse(result.out, nullptr, false).is_discarded()) << result.out;
  }
}

TEST(Terminal, APageOfResultsIsSummedUpForPrograms) {
  const std::string base = testing::TempDir() + "/sealane-terminal-" + std::to_string(getpid());
  const std::string run = base + ".json";
  const std::string page = base + ".html";
  ASSERT_EQ(run_program(sealane({"estimate", "--workload", "decode", "--json", run})).exit_code, 0);
  const ProgramResult result = run_program(sealane({"report", run, "-o", page, "--json", "-"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json found = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_EQ(found["page"], page);
  ASSERT_EQ(found["lines"].size(), 1u);
  EXPECT_EQ(found["lines"][0]["evidence"], "SIMULATED");
  for (const std::string& file : {run, page}) std::filesystem::remove(file);
}

// On a real terminal of so many columns.
std::string printed_on_terminal(const Words& words, unsigned short columns) {
  const winsize size{24, columns, 0, 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    Words program = sealane(words);
    std::vector<char*> arguments;
    for (std::string& word : program) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    unsetenv("COLUMNS");
    setenv("NO_COLOR", "1", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> piece;
  // EIO once the program has closed its end.
  for (ssize_t got; (got = read(terminal, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << text;
  std::erase(text, '\r');
  return text;
}

TEST(Terminal, OfAnyWidthGetsATableThatFitsAndAFileGetsAllOfIt) {
  const Words command = {"estimate", "--workload", "ddp"};
  const std::string whole = run_program(sealane(command)).out;
  EXPECT_EQ(whole.find("Left out"), std::string::npos) << whole;
  EXPECT_NE(whole.find("  wait\n"), std::string::npos) << whole;
  EXPECT_EQ(printed_on_terminal(command, 200), whole);
  const std::string narrow = printed_on_terminal(command, 60);
  EXPECT_NE(narrow.find("Left out, to fit 60 columns: "), std::string::npos) << narrow;
  expect_fits(narrow.substr(narrow.find("policy")), kColumns, "of 60 columns");
  expect_fits(narrow.substr(narrow.find("policy"), narrow.find("Left out") - narrow.find("policy")),
              60, "of 60 columns");
}

}  // namespace
}  // namespace sealane::test
