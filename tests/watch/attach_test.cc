// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does `sealane attach` tell what a running process counts, and one clear line where there is
// nothing to tell?

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "watch/e2e.h"

namespace sealane::test {
namespace {

using Words = std::vector<std::string>;

// A program that is running: letters in, letters out (attachable.cc). Killed at the end.
class Running {
 public:
  explicit Running(const Words& words) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      std::vector<char*> argv;
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Running() {
    close(to_);
    close(from_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  std::string pid() const { return std::to_string(pid_); }
  void say(char letter) const { EXPECT_EQ(write(to_, &letter, 1), 1); }
  char hear() const {
    char letter = 0;
    return read(from_, &letter, 1) == 1 ? letter : '\0';
  }
  void tell(char letter) const {  // and wait until it is done
    say(letter);
    EXPECT_EQ(hear(), letter);
  }
  void start_copying() const { say('r'); }
  void stop_copying() const {
    say('s');
    EXPECT_EQ(hear(), 'r');
    EXPECT_EQ(hear(), 's');
  }
  std::string hear_line() const {
    std::string line;
    for (char c = hear(); c != '\n' && c != '\0'; c = hear()) line += c;
    return line;
  }
  int end() {
    tell('e');
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

Words under(Words flags, const Words& arguments = {}) {
  Words out = {SEALANE_PROGRAM, "run", "--emulate", "--quiet"};
  out.insert(out.end(), flags.begin(), flags.end());
  out.insert(out.end(), {"--", SEALANE_ATTACHABLE});
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

ProgramResult attach(const std::string& pid, const Words& flags = {},
                     const std::string& patience_s = "300") {
  Words words = {"attach", pid, "--seconds", "0.2", "--wait", patience_s};
  words.insert(words.end(), flags.begin(), flags.end());
  return sealane(words, {});
}

// Exit 1, nothing on stdout, and one line that has these words in it.
void expect_refused(const ProgramResult& result, const std::string& words) {
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(Attach, CountsFromThenOnWhereNobodyDidAndTheProgramGoesOn) {
  Running program(under({"--cc", "on", "--policy", "parallel"}));
  program.tell('s');
  program.start_copying();
  const ProgramResult json = attach(program.pid(), {"--json", "-"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto told = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(told.is_object()) << json.out;
  EXPECT_EQ(told["counted_since"], "attach");
  EXPECT_EQ(told["command"], "attachable");
  EXPECT_TRUE(told["presence"].get<std::string>().starts_with("active: ")) << told["presence"];
  const auto& way = told["stats"]["to_device"];
  EXPECT_GT(way["copies"], 0);
  EXPECT_EQ(way["bytes"].get<uint64_t>(), way["copies"].get<uint64_t>() << 20);
  // Nobody waited since the machine was started: what began uncounted has no time of its own.
  EXPECT_LT(told["stats"]["seconds"].get<double>(), 3600);
  EXPECT_LT(way["blocked_s"].get<double>(), 3600);
  for (const auto& [who, messages] : way["messages"].items()) EXPECT_LT(messages["busy_s"], 3600);

  const ProgramResult again = attach(program.pid());
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("process " + program.pid() + " (attachable): active: "),
            std::string::npos)
      << again.out;
  EXPECT_NE(again.out.find("to device"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("first asked"), std::string::npos) << again.out;
  program.stop_copying();
  EXPECT_EQ(program.end(), 0);
}

TEST(Attach, TellsAllOfItWhereStatisticsWereAskedForAtTheStart) {
  const Scratch scratch;
  Running program(under({"--cc", "on", "--policy", "parallel", "--stats", scratch.file("s.json")}));
  for (int i = 0; i < 3; ++i) program.tell('s');
  program.start_copying();
  const auto told =
      nlohmann::json::parse(attach(program.pid(), {"--json", "-"}).out, nullptr, false);
  ASSERT_TRUE(told.is_object());
  EXPECT_EQ(told["counted_since"], "start");
  EXPECT_GE(told["stats"]["to_device"]["copies"], 3);
  program.stop_copying();
  EXPECT_EQ(program.end(), 0);
  EXPECT_GE(read_json(scratch.file("s.json"))["to_device"]["copies"],
            told["stats"]["to_device"]["copies"]);
}

TEST(Attach, ShowsThePageOfObserveBeforeTheEnd) {
  Running program(under({"--cc", "on", "--observe"}));
  program.tell('s');
  program.start_copying();
  const ProgramResult result = attach(program.pid());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("copies' bytes pass libcrypto"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Verdict"), std::string::npos) << result.out;
}

TEST(Attach, SaysThatConfidentialModeIsOff) {
  Running program(under({"--cc", "off", "--policy", "parallel"}));
  program.tell('s');
  expect_refused(attach(program.pid()), "confidential mode is off");
}

TEST(Attach, SaysThatThereIsNoSuchProcessOrNoSealaneInIt) {
  expect_refused(attach("4194303"), "there is no process 4194303");
  const Running plain({"cat"});
  expect_refused(attach(plain.pid()), "does not run under Sealane");
  EXPECT_EQ(attach("0").exit_code, 2);
  EXPECT_EQ(attach("self").exit_code, 2);
}

TEST(Attach, OfAProcessThatDoesNothingSaysWhenItWouldAnswer) {
  Running program(under({"--cc", "on", "--policy", "parallel"}));
  program.tell('s');
  expect_refused(attach(program.pid(), {}, "0.1"), "made none");
  // The question stands: the next call answers it, and nobody is there any more.
  program.tell('s');
  EXPECT_EQ(program.end(), 0);
}

TEST(Attach, OfAProcessThatEndsMeanwhileSaysSo) {
  Running program(under({"--cc", "on", "--policy", "parallel"}));
  program.tell('s');
  ProgramResult result;
  std::thread asks([&] { result = attach(program.pid()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // before or after: both are fine
  EXPECT_EQ(program.end(), 0);
  asks.join();
  EXPECT_EQ(result.exit_code, 1);
  const bool late = result.err.find("there is no process") != std::string::npos;
  EXPECT_TRUE(late || result.err.find("ended before it answered") != std::string::npos)
      << result.err;
}

TEST(Attach, KnowsTheChildOfAForkAndAnotherProgramInTheSameProcess) {
  Running program(under({"--cc", "on", "--policy", "parallel"}));
  program.tell('s');
  program.say('f');
  const std::string child = program.hear_line();
  expect_refused(attach(child), "is a fork of process " + program.pid());
  program.tell('x');
  ProgramResult result;
  for (int i = 0; i < 1000; ++i) {  // until it has become the other one, and that was loaded
    result = attach(program.pid(), {}, "0.01");
    if (result.err.find("has not used the GPU yet") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  expect_refused(result, "has not used the GPU yet");
}

TEST(Attach, ClosingEveryDescriptorOrSayingNoHarmsNobody) {
  Running closed(under({"--cc", "on", "--policy", "parallel"}));
  closed.tell('s');
  closed.tell('c');
  expect_refused(attach(closed.pid()), "cannot be asked");
  setenv("SEALANE_ATTACH", "0", 1);
  Running silent(under({"--cc", "on", "--policy", "parallel"}));
  unsetenv("SEALANE_ATTACH");
  silent.tell('s');
  expect_refused(attach(silent.pid()), "SEALANE_ATTACH=0");
}

TEST(Attach, IsForTheSameUserAlone) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, who can be somebody else";
  Running program(under({"--cc", "on", "--policy", "parallel"}));
  program.tell('s');
  const ProgramResult result =
      run_program({"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                   SEALANE_PROGRAM, "attach", program.pid()});
  if (result.exit_code == 126 || result.exit_code == 127) {
    GTEST_SKIP() << "somebody else cannot start the program here: " << result.err;
  }
  expect_refused(result, "not yours to ask");
}

TEST(Attach, TakesNothingOfWhatAProcessSaysForATerminalsCommands) {
  const Running poses(under({"--cc", "on"}, {"pose"}));
  poses.tell('p');
  const ProgramResult result = attach(poses.pid());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("(?[1mbold): ?[31mred"), std::string::npos) << result.out;
  for (const unsigned char c : result.out + result.err) EXPECT_TRUE(c == '\n' || c >= ' ') << +c;
}

// Root may ask anybody's process.
TEST(Attach, DoesNotFallOverWhatAProcessSays) {
  const Running deep(under({"--cc", "on"}, {"pose"}));
  deep.tell('d');
  expect_refused(attach(deep.pid(), {"--json", "-"}), "gave an answer that is none");
  const Running no_text(under({"--cc", "on"}, {"pose"}));
  no_text.tell('u');
  const ProgramResult result = attach(no_text.pid(), {"--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::parse(result.out, nullptr, false).is_object()) << result.out;
}

}  // namespace
}  // namespace sealane::test
