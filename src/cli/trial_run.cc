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

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "bench/scratch.h"
#include "core/session/sha256.h"

namespace sealane::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCannotStart = 127;
// Some cannot be ended, in the driver or by our user; the next run goes on beside them.
constexpr std::chrono::seconds kEndWithin(10);

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

pid_t number_in(std::string_view text) {
  pid_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? number : -1;
}

// "17 (a name) S 1 ...": its name may have anything in it.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos || name_end + 4 > text.size()
             ? -1
             : number_in(std::string_view(text).substr(name_end + 4));
}

// Empty, too, where /proc is not that of our processes.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  std::error_code error;
  if (std::filesystem::read_symlink("/proc/self", error) != std::to_string(getpid())) return all;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const pid_t process = number_in(entry->path().filename().string());
    if (process > 0 && parent_of(entry->path()) == getpid()) all.push_back(process);
  }
  return all;
}

// The program, if it is still there, and whatever it started: what lost its parent, in whatever
// session, has become our child, so it is ours to end, generation after generation. `others`: what
// was our child before the run, of whoever became us by exec. Not ours to end.
void end_all(pid_t program, const std::vector<pid_t>& others) {
  kill(-program, SIGKILL);
  const auto give_up = Clock::now() + kEndWithin;
  while (Clock::now() < give_up) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    std::vector<pid_t> ours = children();
    std::erase_if(ours, [&](pid_t one) {
      return std::find(others.begin(), others.end(), one) != others.end();
    });
    if (ours.empty() && !others.empty()) return;
    for (const pid_t one : ours) kill(one, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Puts away what else has ended meanwhile, as the system's first process would.
bool has_ended(pid_t program, int& status) {
  int how = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &how, WNOHANG)) > 0;) {
    if (ended != program) continue;
    status = how;
    return true;
  }
  return false;
}

// Which file it is, and when it was last written.
std::string state_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return "missing";
  return fmt::format("{} {} {}.{:09}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace

Result<TrialEnd> run_for_trial(const TrialRun& run, const std::function<void(double)>& tick) {
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<pid_t> others = children();
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start " + run.command[0], errno);
  if (child == 0) become(run);
  int status = 0;
  auto pause = std::chrono::microseconds(500);
  while (true) {
    if (has_ended(child, status)) break;
    const bool stop = bench::interrupted();
    if (stop || elapsed() > run.limit_s) {
      kill(child, SIGKILL);  // it may not have come to its own group yet
      end_all(child, others);
      if (stop) return io_error("interrupted");
      return TrialEnd{Ending::hung, 0, elapsed()};
    }
    tick(elapsed());
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
  const double seconds = elapsed();
  end_all(child, others);  // what it left behind must not disturb the next run
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
