// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane trial` come to the right verdict about programs and drivers of every kind?

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
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

// Of the program's: its parent keeps the run, and the parent of that is the trial.
const std::string kTrial = "$(cut -d' ' -f4 /proc/$PPID/stat)";

// What left its session, and what that started in one of its own.
TEST(Trial, EndsWhatARunLeavesBehindInOtherSessions) {
  const Scratch scratch;
  const std::string numbers = scratch.file("numbers");
  const std::string leave = "setsid sh -c 'echo $$ >> " + numbers +
                            "; setsid sh -c \"echo \\$\\$ >> " + numbers +
                            "; exec sleep 1000\" & wait' & i=0; until [ \"$(grep -c . " + numbers +
                            ")\" = 2 ] || [ $i = 6000 ]; do sleep 0.05; i=$((i+1)); done; ";
  for (const std::string& end :
       {"kill -TERM " + kTrial + "; exec sleep 1000", std::string("exit 3")}) {
    std::filesystem::remove(numbers);
    const Scratch one;
    const Tried tried = try_on_emulated(one, {}, {"sh", "-c", leave + end});
    EXPECT_EQ(tried.result.signal, end == "exit 3" ? 0 : SIGTERM) << tried.result.err;
    std::ifstream file(numbers);
    int left = 0;
    for (pid_t process = 0; file >> process; ++left) {
      EXPECT_EQ(kill(process, 0), -1) << process << " after " << end;
      kill(process, SIGKILL);
    }
    EXPECT_EQ(left, 2);
  }
}

// Who became the trial by exec may have started something before, and that something meanwhile.
TEST(Trial, LeavesAloneWhatItDidNotStart) {
  const Scratch scratch;
  const std::string shell =
      "cd \"$0\" || exit 9\n"
      "await() { i=0; until [ -s $1 ] || [ $i = 6000 ]; do sleep 0.05; i=$((i+1)); done; }\n"
      "leave() { setsid sh -c 'echo $$ > '$1'; exec sleep 1000' > log 2>&1 & }\n"
      "leave before; await before\n"
      "(await go; (leave meanwhile)) &\n"
      "exec \"$@\"";
  const std::string program =
      "echo > go; i=0; until [ -s meanwhile ] || [ $i = 6000 ]; do sleep 0.05; i=$((i+1)); done; "
      "exit 3";
  const ProgramResult run =
      run_program({"sh", "-c", shell, scratch.file(""), SEALANE_PROGRAM, "trial", "--emulate",
                   "--rounds", "1", "-o", scratch.file("trial"), "--", "sh", "-c", program});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_NE(run.out.find("exit code 3"), std::string::npos) << run.out << run.err;
  for (const char* name : {"before", "meanwhile"}) {
    pid_t process = 0;
    std::ifstream(scratch.file(name)) >> process;
    EXPECT_GT(process, 0) << name;
    if (process <= 0) continue;
    const std::string state = contents("/proc/" + std::to_string(process) + "/stat");
    EXPECT_NE(state, "") << name;
    EXPECT_EQ(state.find(") Z "), std::string::npos) << name;
    kill(process, SIGKILL);
  }
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

TEST(Trial, ReadsNoPipeInThePlaceOfAFile) {
  const Scratch scratch;
  const std::string out = scratch.file("weights");
  const std::string program =
      script(scratch, "if [ -e " + out + " ]; then rm " + out + "; mkfifo " + out +
                          "; else echo x > " + out + "; fi");
  const std::vector<std::string> flags = {"--ignore-stdout", "--compare", out};
  const Tried tried = try_on_emulated(scratch, flags, {program});
  EXPECT_EQ(tried.verdict(), "not_reproducible") << tried.result.out << tried.result.err;
  EXPECT_NE(tried.result.out.find("weights is missing"), std::string::npos) << tried.result.out;
  ASSERT_TRUE(std::filesystem::is_fifo(out));
  const Scratch other;
  const Tried refused = try_on_emulated(other, flags, {program});
  EXPECT_EQ(refused.result.exit_code, 2) << refused.result.out;
  EXPECT_NE(refused.result.err.find("--compare"), std::string::npos) << refused.result.err;
}

TEST(Trial, TakesStatisticsThatAreListsInLists) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(
      scratch, {},
      {"sh", "-c",
       "[ -z \"$SEALANE_STATS\" ] || { printf '{\"observed\":'; head -c 200000 /dev/zero | "
       "tr '\\0' '['; head -c 200000 /dev/zero | tr '\\0' ']'; echo '}'; } > \"$SEALANE_STATS\""});
  EXPECT_EQ(tried.verdict(), "gpu_unused") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.result.signal, 0);
  EXPECT_GE(std::filesystem::file_size(scratch.file("trial/runs/observe/stats.json")), 400000u);
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

// --- what it must not do to anybody

TEST(Trial, DoesNotWriteItsFindingsOverTheProgramOrWhatIsCompared) {
  const Scratch scratch;
  const std::string program = script(scratch, "");
  const std::string before = contents(program);
  const std::string compared = scratch.file("weights");
  std::ofstream(compared) << "precious";
  for (const std::string& file : {program, compared}) {
    const ProgramResult run = sealane({"trial", "--emulate", "-o", scratch.file("trial"),
                                       "--compare", compared, "--json", file, "--"},
                                      {program});
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_NE(run.err.find("--json would overwrite"), std::string::npos) << run.err;
  }
  EXPECT_EQ(contents(program), before);
  EXPECT_EQ(contents(compared), "precious");
}

TEST(Trial, RefusesFindingsWhereItsDirectoryWillBe) {
  const Scratch scratch;
  const std::string directory = scratch.file("d");
  for (const std::string in : {"", "/", "/in/it"}) {
    const ProgramResult run =
        sealane({"trial", "--emulate", "-o", directory + in, "--json", directory, "--"}, {"true"});
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_NE(run.err.find("--json"), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(directory));
  }
}

TEST(Trial, RefusesADirectoryThatIsSomebodyElsesOrThatOthersWriteTo) {
  const Scratch scratch;
  const std::string directory = scratch.file("trial");
  ASSERT_EQ(mkdir(directory.c_str(), 0755), 0);
  ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
  const Tried open = try_on_emulated(scratch, {}, {"true"});
  EXPECT_EQ(open.result.exit_code, 2) << open.result.out;
  EXPECT_NE(open.result.err.find("others may write"), std::string::npos) << open.result.err;
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  ASSERT_EQ(chown(directory.c_str(), 65534, 65534), 0);
  for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--resume"}}) {
    const Tried foreign = try_on_emulated(scratch, flags, {"true"});
    EXPECT_EQ(foreign.result.exit_code, 2) << foreign.result.out;
    EXPECT_NE(foreign.result.err.find("somebody else's"), std::string::npos) << foreign.result.err;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  // Nor one that somebody else's link leads to.
  ASSERT_EQ(chown(directory.c_str(), 0, 0), 0);
  std::filesystem::rename(directory, scratch.file("roots"));
  std::filesystem::create_directory_symlink(scratch.file("roots"), directory);
  ASSERT_EQ(lchown(directory.c_str(), 65534, 65534), 0);
  EXPECT_EQ(try_on_emulated(scratch, {}, {"true"}).result.exit_code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.file("roots")));
}

// What a trial looks like after `runs` of its runs.
void cut_back(const Scratch& scratch, int runs) {
  nlohmann::json state = read_json(scratch.file("trial/trial.json"));
  state["runs"].erase(state["runs"].begin() + runs, state["runs"].end());
  std::ofstream(scratch.file("trial/trial.json")) << state;
}

TEST(Trial, WritesThroughNoLink) {
  const Scratch scratch;
  ASSERT_EQ(try_on_emulated(scratch, {}, kGood).verdict(), "fine");
  cut_back(scratch, 2);
  std::ofstream(scratch.file("precious")) << "kept";
  for (const char* name : {"out", "err"}) {
    const std::string output = scratch.file(std::string("trial/runs/alone-2/") + name);
    std::filesystem::remove(output);
    std::filesystem::create_symlink(scratch.file("precious"), output);
  }
  for (const char* name : {"report.txt", "report.html", "bundle.tar", "bundle.tar.new"}) {
    const std::string page = scratch.file(std::string("trial/") + name);
    std::filesystem::remove(page);
    std::filesystem::create_symlink(scratch.file("precious"), page);
  }
  const std::string state = scratch.file("trial/trial.json");
  std::filesystem::rename(state, scratch.file("state"));
  std::filesystem::create_symlink(scratch.file("state"), state);
  const std::string state_before = contents(scratch.file("state"));
  const Tried resumed = try_on_emulated(scratch, {"--resume"}, kGood);
  EXPECT_EQ(resumed.verdict(), "fine") << resumed.result.out << resumed.result.err;
  EXPECT_EQ(contents(scratch.file("precious")), "kept");
  EXPECT_EQ(contents(scratch.file("state")), state_before);
  for (const char* name : {"report.txt", "report.html", "bundle.tar", "trial.json"}) {
    const std::string page = scratch.file(std::string("trial/") + name);
    EXPECT_EQ(std::filesystem::symlink_status(page).type(), std::filesystem::file_type::regular);
  }
  EXPECT_FALSE(std::filesystem::is_symlink(scratch.file("trial/bundle.tar.new")));
  struct stat found {};
  ASSERT_EQ(stat(scratch.file("trial").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

// --- what can be sent

TEST(Trial, TheBundleHasTheCountersWhateverTheArgumentsAre) {
  const Scratch scratch;
  const std::vector<std::string> program = {
      example("layer_swap"), "--width", "128", "--steps", "1", "--layers", "2"};
  const Tried tried = try_on_emulated(scratch, {}, program);
  ASSERT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  const std::string there = scratch.file("unpacked");
  std::filesystem::create_directory(there);
  ASSERT_EQ(run_program({"tar", "xf", scratch.file("trial/bundle.tar"), "-C", there}).exit_code, 0);
  size_t counted = 0;
  for (const auto& one : std::filesystem::directory_iterator(there)) {
    if (one.path().extension() != ".json") continue;
    const std::string text = contents(one.path());
    const nlohmann::json member = nlohmann::json::parse(text, nullptr, false);
    ASSERT_TRUE(member.is_object()) << one.path() << "\n" << text;
    EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 10) << "not for people: " << one.path();
    if (!one.path().filename().string().starts_with("stats-")) continue;
    ++counted;
    EXPECT_GT(member["to_device"]["bytes"], 0) << text;
  }
  EXPECT_GE(counted, 6u);
  const nlohmann::json trial = read_json(there + "/trial.json");
  for (size_t i = 0; i < trial["runs"].size(); ++i) {
    EXPECT_EQ(trial["runs"][i]["seconds"], tried.found["runs"][i]["seconds"]);
  }
}

TEST(Trial, TheBundleHasNothingThatTheProgramSaidInSealanesName) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(
      scratch, {},
      {script(scratch,
              "echo 'sealane: the-output' >&2; echo 'sealane --observe: the-output' >&2")});
  ASSERT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  for (const auto& run : tried.found["runs"]) {
    EXPECT_TRUE(run.value("said", nlohmann::json::array()).empty()) << run;
  }
  EXPECT_EQ(contents(scratch.file("trial/bundle.tar")).find("the-output"), std::string::npos);
}

// --- whatever comes

TEST(Trial, SaysSoWhereTheCurrentDirectoryIsGone) {
  const Scratch scratch;
  const std::string gone = scratch.file("gone");
  const ProgramResult run = run_program(
      {"sh", "-c", "mkdir '" + gone + "'; cd '" + gone + "'; rmdir '" + gone + "'; exec \"$@\"",
       "sh", SEALANE_PROGRAM, "trial", "--emulate", "--", "true"});
  EXPECT_EQ(run.signal, 0);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.err.find("current directory"), std::string::npos) << run.err;
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

TEST(Trial, TakesBytesThatAreNoText) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(
      scratch, {}, {script(scratch, "printf 'sealane: \\377\\n' >&2; printf 'out \\377\\n'")});
  EXPECT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  const Scratch other;  // the 60th byte of a line is in the middle of a character
  const Tried differs = try_on_emulated(
      other, {},
      {script(other, "printf '\\377%s-%s\\n' $$ \"$(yes é | head -n 60 | tr -d '\\n')\"")});
  EXPECT_EQ(differs.verdict(), "not_reproducible") << differs.result.out << differs.result.err;
  EXPECT_TRUE(is_utf8(contents(other.file("trial/report.html"))));
  EXPECT_TRUE(is_utf8(contents(other.file("trial/report.txt"))));
}

TEST(Trial, DoesNotResumeWhatWasChanged) {
  const Scratch scratch;
  ASSERT_EQ(try_on_emulated(scratch, {"--limit", "0.2"}, {"sleep", "1000"}).verdict(),
            "program_hangs");
  const nlohmann::json whole = read_json(scratch.file("trial/trial.json"));
  const auto resumed_with = [&](auto change) {
    nlohmann::json state = whole;
    change(state);
    std::ofstream(scratch.file("trial/trial.json")) << state;
    return try_on_emulated(scratch, {"--limit", "0.2", "--resume"}, {"sleep", "1000"}).result;
  };
  for (const ProgramResult& run :
       {resumed_with([](nlohmann::json& state) { state["runs"][0]["name"] = 5; }),
        resumed_with([](nlohmann::json& state) { state["runs"] = 5; }),
        resumed_with([](nlohmann::json& state) { state["runs"][1] = "alone-1"; })}) {
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("was changed since"), std::string::npos) << run.err;
  }
}

TEST(Trial, GoesOnUnderNohup) {
  const Scratch scratch;
  const std::string program =
      script(scratch, "for p in $PPID " + kTrial + "; do kill -HUP $p; kill -INT $p; done");
  const ProgramResult run =
      run_program({"sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh", SEALANE_PROGRAM, "trial",
                   "--emulate", "--rounds", "1", "-o", scratch.file("trial"), "--", program});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.err.find("interrupted"), std::string::npos) << run.err;
}

TEST(Trial, IsEndedByASignalAndSaysSoOnce) {
  const Scratch scratch;
  const ProgramResult run =
      try_on_emulated(scratch, {}, {script(scratch, "kill -TERM " + kTrial + "; sleep 1000")})
          .result;
  EXPECT_EQ(run.signal, SIGTERM) << run.err;
  const size_t first = run.err.find("interrupted");
  ASSERT_NE(first, std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("interrupted", first + 1), std::string::npos) << run.err;
}

// By whoever spares nobody: the trial does not wait, and what was started is gone with its keeper.
TEST(Trial, SaysThatTheKeeperOfARunWasKilled) {
  const Scratch scratch;
  const ProgramResult run =
      try_on_emulated(scratch, {}, {"sh", "-c", "kill -KILL $PPID; exec sleep 1000"}).result;
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.err.find("keeps the run was killed"), std::string::npos) << run.err;
}

// Repetitions of repetitions: as many ways to match as a line has subsets.
constexpr const char* kEndless = "(a+)+$";
const std::string kManyAs = "yes a | head -n 3000 | tr -d '\\n'; echo b";

TEST(Trial, AMaskThatWouldNeverEndIsRefusedByItsName) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {"--mask", kEndless}, {script(scratch, kManyAs)});
  EXPECT_EQ(tried.result.exit_code, 2) << tried.result.out << tried.result.err;
  EXPECT_NE(tried.result.err.find(kEndless), std::string::npos) << tried.result.err;
}

TEST(Trial, IsEndedByASignalWhileItMasks) {
  const Scratch scratch;
  const std::string out = scratch.file("trial/runs/alone-1/out");
  // The program has begun to write, so a child of the trial's name is the one that masks.
  const std::string masks =
      "cat /proc/$!/task/$!/children | tr ' ' '\\n' | sed 's,.*,/proc/&/comm,' | "
      "xargs -r cat 2>/dev/null | grep -qx sealane";
  const ProgramResult run =
      run_program({"sh", "-c",
                   "\"$@\" & until [ -s '" + out + "' ] && " + masks +
                       "; do kill -0 $! || break; sleep 0.1; done; kill -TERM $!; wait $!",
                   "sh", SEALANE_PROGRAM, "trial", "--emulate", "--mask", kEndless, "-o",
                   scratch.file("trial"), "--", script(scratch, kManyAs)});
  EXPECT_FALSE(run.timed_out);
  EXPECT_EQ(run.exit_code, 128 + SIGTERM) << run.err;
  EXPECT_NE(run.err.find("interrupted after 1 run"), std::string::npos) << run.err;
}

TEST(Trial, SaysThatTheRuntimeIsSwitchedOff) {
  const Scratch scratch;
  ProgramOptions off;
  off.environment = {"SEALANE_DISABLE=1"};
  const ProgramResult run = run_program(
      {SEALANE_PROGRAM, "trial", "--emulate", "-o", scratch.file("trial"), "--", kGood[0]}, off);
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_NE(run.err.find("SEALANE_DISABLE"), std::string::npos) << run.err;
  EXPECT_EQ(run.out.find("used no GPU"), std::string::npos) << run.out;
}

ProgramResult try_with(const Scratch& scratch, const std::string& variable,
                       const std::string& program) {
  ProgramOptions options;
  options.environment = {variable};
  return run_program({SEALANE_PROGRAM, "trial", "--emulate", "--rounds", "1", "-o",
                      scratch.file("trial"), "--", program},
                     options);
}

TEST(Trial, RefusesVariablesByWhichEveryRunWouldWriteAFile) {
  for (const std::string name : {"SEALANE_STATS", "SEALANE_METRICS", "SEALANE_TRACE",
                                 "SEALANE_RECORD", "SEALANE_EMU_STATS"}) {
    const Scratch scratch;
    const std::string program = script(scratch, "");
    const std::string before = contents(program);
    const ProgramResult run = try_with(scratch, name + "=" + program, program);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
    EXPECT_EQ(contents(program), before) << name;
  }
}

TEST(Trial, RefusesVariablesThatRunRefuses) {
  const Scratch scratch;
  const ProgramResult run = try_with(scratch, "SEALANE_WORKERS=nan", kGood[0]);
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_NE(run.err.find("SEALANE_WORKERS"), std::string::npos) << run.err;
}

// What `eval "$(sealane run --print-env)"` leaves behind.
TEST(Trial, DoesNotTakeAProgramUnderTheRuntimeForThePlainOne) {
  const Scratch scratch;
  const ProgramResult run =
      run_program({"sh", "-c",
                   "eval \"$(\"$0\" run --emulate --enable default --print-env)\"; "
                   "exec \"$0\" trial --emulate --rounds 1 -o \"$1\" -- true",
                   SEALANE_PROGRAM, scratch.file("trial")});
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_NE(run.err.find("LD_PRELOAD"), std::string::npos) << run.err;
}

TEST(Trial, RefusesFindingsInItsOwnDirectory) {
  const Scratch scratch;
  ASSERT_EQ(try_on_emulated(scratch, {}, {"true"}).verdict(), "gpu_unused");
  for (const char* name : {"bundle.tar", "runs/alone-1/out", "new"}) {
    const std::string file = scratch.file(std::string("trial/") + name);
    const bool there = std::filesystem::exists(file);
    const std::string before = contents(file);
    const ProgramResult run = sealane({"trial", "--emulate", "--rounds", "1", "--resume", "-o",
                                       scratch.file("trial"), "--json", file, "--"},
                                      {"true"});
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_NE(run.err.find("--json"), std::string::npos) << run.err;
    EXPECT_EQ(std::filesystem::exists(file), there) << name;
    EXPECT_EQ(contents(file), before) << name;
  }
}

TEST(Trial, IsTheOnlyOneInItsDirectory) {
  const Scratch scratch;
  const std::string other = scratch.file("other");
  const std::string nested =
      "[ -e " + other + " ] || { '" SEALANE_PROGRAM "' trial --emulate -o '" +
      scratch.file("trial") + "' --resume -- true 2> " + other + "; echo $? >> " + other + "; }";
  const Tried tried = try_on_emulated(scratch, {}, {script(scratch, nested)});
  EXPECT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  const std::string said = contents(other);
  EXPECT_NE(said.find("another trial is under way"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("\n2\n")) << said;
}

TEST(Trial, TheBundleHasNoFileThatTheProgramWrites) {
  const Scratch scratch;
  const std::string stats = scratch.file("stats.json");
  const Tried tried =
      try_on_emulated(scratch, {"--compare", stats},
                      {script(scratch, "echo '{\"weights\": \"the-output\"}' > '" + stats + "'")});
  ASSERT_EQ(tried.verdict(), "fine") << tried.result.out << tried.result.err;
  EXPECT_EQ(contents(scratch.file("trial/bundle.tar")).find("the-output"), std::string::npos);
  EXPECT_NE(contents(scratch.file("trial/runs/alone-1/files/stats.json")), "");
  EXPECT_EQ(read_json(scratch.file("trial/runs/observe/stats.json"))["version"], 1);
}

TEST(Trial, ComparesAllThatAProgramSays) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(
      scratch, {},
      {script(scratch, "yes \"$(printf '%5000s' x)\" | head -c 67200000; echo; echo number $$")});
  EXPECT_EQ(tried.verdict(), "not_reproducible") << tried.result.out << tried.result.err;
  EXPECT_EQ(tried.runs().back(), "alone-2");
  EXPECT_NE(tried.result.out.find("behind its first 64 MiB"), std::string::npos)
      << tried.result.out;
}

TEST(Trial, GoesOnWhenTheProgramStopsItsKeeper) {
  const Scratch scratch;
  const Tried tried = try_on_emulated(scratch, {}, {"sh", "-c", "kill -STOP $PPID"});
  EXPECT_EQ(tried.verdict(), "gpu_unused") << tried.result.out << tried.result.err;
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
