// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "bench/scratch.h"
#include "core/session/sha256.h"

namespace sealane::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCannotStart = 127;

[[noreturn]] void become(const TrialRun& run) {
  setpgid(0, 0);  // what it starts ends with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int in = open("/dev/null", O_RDONLY);
  if (in < 0) _exit(kCannotStart);
  dup2(in, STDIN_FILENO);
  dup2(run.out, STDOUT_FILENO);
  dup2(run.err, STDERR_FILENO);
  enter(run.environment);
  bench::let_signals_end_this_process();
  std::vector<char*> words;
  for (const std::string& word : run.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(kCannotStart);
}

void end(pid_t child) {
  kill(-child, SIGKILL);
  kill(child, SIGKILL);  // it may not have come to its own group yet
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

// Which file it is, and when it was last written.
std::string state_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return "missing";
  return fmt::format("{} {} {}.{:09}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace

Result<TrialEnd> run_for_trial(const TrialRun& run, const std::function<void(double)>& tick) {
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start " + run.command[0], errno);
  if (child == 0) become(run);
  int status = 0;
  auto pause = std::chrono::microseconds(500);
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    const bool stop = bench::interrupted();
    if (stop || elapsed() > run.limit_s) {
      end(child);
      if (stop) return io_error("interrupted");
      return TrialEnd{Ending::hung, 0, elapsed()};
    }
    tick(elapsed());
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
  const double seconds = elapsed();
  kill(-child, SIGKILL);  // what it left behind must not disturb the next run
  if (WIFSIGNALED(status)) return TrialEnd{Ending::crashed, WTERMSIG(status), seconds};
  const int code = WEXITSTATUS(status);
  return TrialEnd{code == 0 ? Ending::done : Ending::failed, code, seconds};
}

WatchedFile::WatchedFile(std::string path) : path_(std::move(path)), before_(state_of(path_)) {}

std::string WatchedFile::fingerprint() const {
  const std::string after = state_of(path_);
  if (after == "missing") return "missing";
  if (after == before_) return "unwritten";
  std::ifstream file(path_, std::ios::binary);
  std::array<char, 64_KiB> piece;
  Sha256 hash;
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    hash.add(as_bytes(std::string_view(piece.data(), static_cast<size_t>(file.gcount()))));
  }
  return hash.text();
}

std::string fingerprint_of(const std::string& text) {
  Sha256 hash;
  hash.add(as_bytes(text));
  return hash.text();
}

}  // namespace sealane::cli
