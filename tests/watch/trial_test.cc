// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane trial` come to the right verdict about programs and drivers of every kind?

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

const std::vector<std::string> kGood = {
    example("layer_swap"), "--width", "256", "--steps", "1", "--layers", "2"};

struct Tried {
  ProgramResult result;
  nlohmann::json found;

  std::string verdict() const { return found.value("verdict", "none"); }
  std::vector<std::string> runs() const {
    std::vector<std::string> names;
    for (const auto& run : found.value("runs", nlohmann::json::array()))
      names.push_back(run["name"]);
    return names;
  }
};

Tried try_on_emulated(const Scratch& scratch, const std::vector<std::string>& flags,
                      const std::vector<std::string>& program) {
  std::vector<std::string> words = {"trial",    "--emulate", "-o",     scratch.file("trial"),
                                    "--rounds", "1",         "--json", scratch.file("found.json")};
  words.insert(words.end(), flags.begin(), flags.end());
  words.emplace_back("--");
  Tried tried{sealane(words, program), {}};
  tried.found = read_json(scratch.file("found.json"));
  return tried;
}

// A program in sh that does `more` and then uses the GPU.
std::string script(const Scratch& scratch, const std::string& more) {
  const std::string path = scratch.file("program.sh");
  std::string use = "#!/bin/sh\n" + more + "\nexec";
  for (const std::string& word : kGood) use += " '" + word + "'";
  std::ofstream(path) << use << "\n";
  chmod(path.c_str(), 0755);
  return path;
}

TEST(Trial, OfAProgramThatWorksTriesEveryPartAndNamesTheLineForProduction) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {}, kGood);
  EXPECT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.result.exit_code, 0);
  EXPECT_EQ(tried.runs().size(), 12u);
  EXPECT_TRUE(tried.found["production"].get<std::string>().starts_with("sealane run "));
  EXPECT_EQ(tried.found["driver"][0]["mark"], "yes");
  for (const auto& part : tried.found["parts"]) EXPECT_EQ(part["state"], "same") << part;
  std::istringstream page(tried.result.out);
  for (std::string line; std::getline(page, line);) {
    const bool long_word = line.find('/') != std::string::npos;  // names of files are theirs
    EXPECT_TRUE(line.size() <= 80 || long_word) << line;
  }
  EXPECT_NE(contents(scratch.file("trial/report.html")).find("data-verdict=\"fine\""),
            std::string::npos);
  EXPECT_NE(contents(scratch.file("trial/runs/default-1/stats.json")), "");
}

TEST(Trial, OfADriverThatSealsOutOfSightLeavesOutWhatCannotWork) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {"--reach", "own"}, kGood);
  EXPECT_EQ(tried.verdict(), "limited") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.result.exit_code, 0);
  EXPECT_EQ(tried.found["driver"][0]["mark"], "NO");
  EXPECT_EQ(tried.found["parts"][0]["state"], "of no use here");
  EXPECT_NE(tried.found["production"].get<std::string>().find("--enable async"), std::string::npos);
}

TEST(Trial, NamesThePartThatBreaksTheProgramAndKeepsItOutOfTheLine) {
  const Scratch scratch;
  const std::string program = script(
      scratch, "case \"$SEALANE_ENABLE\" in *async*|default) echo sum 2;; *) echo sum 1;; esac");
  const Tried tried = try_on_emulated(scratch, {}, {program});
  EXPECT_EQ(tried.verdict(), "part_breaks") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.result.exit_code, 1);
  EXPECT_EQ(tried.found["parts"][2]["state"], "BREAKS");
  EXPECT_EQ(tried.found["parts"][3]["state"], "not tried");
  EXPECT_EQ(tried.runs().back(), "control-2");
  EXPECT_NE(tried.result.out.find("With `async`"), std::string::npos) << tried.result.out;
  EXPECT_NE(tried.result.out.find("'sum 2' instead of 'sum 1'"), std::string::npos);
  const std::string line = tried.found["production"];
  EXPECT_NE(line.find("--enable engine"), std::string::npos) << line;
  EXPECT_EQ(line.find("async"), std::string::npos) << line;
}

TEST(Trial, NamesThePartWithWhichTheProgramCrashes) {
  const Scratch scratch;
  const std::string program =
      script(scratch, "case \"$SEALANE_ENABLE\" in *parallel*|default) kill -SEGV $$;; esac");
  const Tried tried = try_on_emulated(scratch, {}, {program});
  EXPECT_EQ(tried.verdict(), "part_breaks") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.found["parts"][1]["state"], "BREAKS");
  EXPECT_NE(tried.result.out.find("signal 11"), std::string::npos) << tried.result.out;
}

TEST(Trial, OfAProgramThatSaysSomethingElseEachTimeShowsWhatAndStops) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {}, {script(scratch, "echo number $$")});
  EXPECT_EQ(tried.verdict(), "not_reproducible") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.result.exit_code, 1);
  EXPECT_EQ(tried.runs().back(), "alone-2");
  EXPECT_NE(tried.result.out.find("line 1: 'number "), std::string::npos) << tried.result.out;
  EXPECT_NE(tried.result.out.find("--mask"), std::string::npos);
  EXPECT_EQ(tried.found["production"], "");
}

TEST(Trial, AMaskMakesItComparable) {
  const Scratch scratch;
  const Tried tried =
      try_on_emulated(scratch, {"--mask", "number [0-9]+"}, {script(scratch, "echo number $$")});
  EXPECT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
}

TEST(Trial, OfAProgramThatHangsEndsIt) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {"--limit", "0.2"}, {"sleep", "1000"});
  EXPECT_EQ(tried.verdict(), "program_hangs") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.runs().back(), "alone-1");
}

TEST(Trial, OfAProgramThatCrashesByItselfBlamesNobodyElse) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {}, {script(scratch, "kill -SEGV $$")});
  EXPECT_EQ(tried.verdict(), "program_fails") << tried.result.out << tried.result.err;
  EXPECT_NE(tried.result.out.find("without Sealane"), std::string::npos);
}

TEST(Trial, SaysWhenThereIsNothingToTry) {
  const Scratch scratch;
  EXPECT_EQ(try_on_emulated(scratch, {}, {"true"}).verdict(), "gpu_unused");
  const Scratch other;
  EXPECT_EQ(try_on_emulated(other, {"--cc", "off"}, kGood).verdict(), "not_confidential");
}

TEST(Trial, ComparesFilesTheProgramWrites) {
  const Scratch scratch;
  const std::string out = scratch.file("weights");
  const std::string program =
      script(scratch, "echo \"$SEALANE_ENABLE\" | tr -d enparlgi, > " + out);
  const Tried tried = try_on_emulated(scratch, {"--ignore-stdout", "--compare", out}, {program});
  EXPECT_EQ(tried.verdict(), "part_breaks") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.found["parts"][2]["state"], "BREAKS");
  EXPECT_NE(tried.found["headline"].get<std::string>().find("weights is another one"),
            std::string::npos)
      << tried.result.out;
}

// What was run is not run again: the first program is gone by then.
TEST(Trial, GoesOnWhereItWas) {
  const Scratch scratch;
  const std::string count = scratch.file("count");
  const std::string program = script(
      scratch, "echo x >> " + count + "; [ ! -e " + scratch.file("stop") + " ] || sleep 1000");
  // The state of a trial that was ended after three runs.
  const Tried whole = try_on_emulated(scratch, {}, {program});
  ASSERT_EQ(whole.verdict(), "fine") << whole.result.err;
  nlohmann::json state = read_json(scratch.file("trial/trial.json"));
  state["runs"].erase(state["runs"].begin() + 3, state["runs"].end());
  std::ofstream(scratch.file("trial/trial.json")) << state;
  const auto runs_of_program = [&] {
    const std::string text = contents(count);
    return std::count(text.begin(), text.end(), 'x');
  };
  const auto before = runs_of_program();
  const Tried again = try_on_emulated(scratch, {}, {program});
  EXPECT_EQ(again.result.exit_code, 2);
  EXPECT_NE(again.result.err.find("--resume"), std::string::npos) << again.result.err;
  const Tried resumed = try_on_emulated(scratch, {"--resume"}, {program});
  EXPECT_EQ(resumed.verdict(), "fine") << resumed.result.err;
  EXPECT_EQ(runs_of_program() - before, 9);
  const Tried other = try_on_emulated(scratch, {"--resume"}, {"true"});
  EXPECT_EQ(other.result.exit_code, 2) << other.result.err;
}

TEST(Trial, TheBundleHasNoOutputNoArgumentsAndNoPaths) {
  const Scratch scratch;
  std::vector<std::string> program = {
      script(scratch, "echo the-output; echo sealane: of /etc/secret >&2"), "the-argument"};
  const Tried tried = try_on_emulated(scratch, {}, program);
  ASSERT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  const std::string bundle = scratch.file("trial/bundle.tar");
  const ProgramResult list = run_program({"tar", "tf", bundle});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const char* member : {"LIST.txt", "trial.json", "doctor.json", "observe.txt"}) {
    EXPECT_NE(list.out.find(member), std::string::npos) << list.out;
  }
  const std::string text = contents(bundle);
  for (const std::string secret : {"the-output", "the-argument", "/etc/secret", "program.sh/"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  }
  EXPECT_EQ(text.find(scratch.file("")), std::string::npos);
}

TEST(Trial, RefusesWhatMakesNoSense) {
  EXPECT_EQ(sealane({"trial"}, {}).exit_code, 2);
  EXPECT_EQ(sealane({"trial", "--ignore-stdout"}, {"--", "true"}).exit_code, 2);
  EXPECT_EQ(sealane({"trial", "--emulate", "--mask", "("}, {"--", "true"}).exit_code, 2);
  EXPECT_EQ(sealane({"trial", "--reach", "own"}, {"--", "true"}).exit_code, 2);
  EXPECT_EQ(sealane({"trial", "--resume", "-o", "/nonexistent/x"}, {"--", "true"}).exit_code, 2);
}

}  // namespace
}  // namespace sealane::test
