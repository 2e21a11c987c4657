// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
#include <type_traits>
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
// session, has become our child, so it is ours to end, generation after generation.
void end_all(pid_t program) {
  kill(-program, SIGKILL);
  const auto give_up = Clock::now() + kEndWithin;
  while (Clock::now() < give_up) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    for (const pid_t one : children()) kill(one, SIGKILL);
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

// Between two looks: short runs are timed well, and long ones not disturbed.
class Pause {
 public:
  // True, at once: `descriptor` can be read, or nobody is at its other end.
  bool wait_for(int descriptor) {
    pollfd readable{descriptor, POLLIN, 0};
    const timespec limit{0, next_.count()};
    next_ = std::min(next_ * 2, std::chrono::nanoseconds(20'000'000));
    return ppoll(&readable, 1, &limit, nullptr) > 0;
  }

 private:
  std::chrono::nanoseconds next_{500'000};
};

struct Report {
  int error = 0;  // an errno: it could not be started
  TrialEnd end;
};
static_assert(std::is_trivially_copyable_v<Report>);

TrialEnd end_of(int status, double seconds) {
  if (WIFSIGNALED(status)) return TrialEnd{Ending::crashed, WTERMSIG(status), seconds};
  const int code = WEXITSTATUS(status);
  return TrialEnd{code == 0 ? Ending::done : Ending::failed, code, seconds};
}

// The process between the trial and the program. Whatever the program started comes to it, and
// nothing else: the trial itself may have children of whoever became it by exec, which are not its
// to end. It ends them when the program has ended, took too long, or `trial` is closed at the other
// end, by the trial or because that was killed.
[[noreturn]] void keep(const TrialRun& run, int trial) noexcept {
  prctl(PR_SET_NAME, "sealane-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const pid_t program = fork();
  if (program == 0) become(run);
  Report report{program < 0 ? errno : 0, {}};
  send(trial, &program, sizeof program, MSG_NOSIGNAL);
  if (program > 0) {
    int status = 0;
    bool ended = false;
    Pause pause;
    do {
      ended = has_ended(program, status);
    } while (!ended && elapsed() <= run.limit_s && !pause.wait_for(trial));
    report.end = ended ? end_of(status, elapsed()) : TrialEnd{Ending::hung, 0, elapsed()};
    if (!ended) kill(program, SIGKILL);  // it may not have come to its own group yet
    end_all(program);                    // what it left behind must not disturb the next run
  }
  send(trial, &report, sizeof report, MSG_NOSIGNAL);
  _exit(0);
}

// A program may have stopped the process that keeps it; nobody else would let it go on.
bool lets_go_on(pid_t keeper, int how) {
  int status = 0;
  if (waitpid(keeper, &status, how | WUNTRACED) != keeper || !WIFSTOPPED(status)) return false;
  kill(keeper, SIGCONT);
  return true;
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
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_error("cannot start " + run.command[0], errno);
  }
  const auto begin = Clock::now();
  const pid_t keeper = fork();
  const int error = errno;
  if (keeper == 0) {
    close(ends[0]);
    keep(run, ends[1]);
  }
  close(ends[1]);
  pid_t program = -1;
  ssize_t got = -1;
  for (Pause pause; keeper > 0 && !pause.wait_for(ends[0]);) lets_go_on(keeper, WNOHANG);
  do {
    got = recv(ends[0], &program, sizeof program, MSG_WAITALL);
  } while (keeper > 0 && got < 0 && errno == EINTR);  // what follows is the report
  const bool began = keeper > 0 && got == ssize_t{sizeof program};
  Report report;
  bool stop = false;
  Pause pause;
  while (keeper > 0 && !stop && !pause.wait_for(ends[0])) {
    stop = bench::interrupted();
    lets_go_on(keeper, WNOHANG);
    tick(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  const bool told = keeper > 0 && !stop &&
                    recv(ends[0], &report, sizeof report, MSG_WAITALL) == ssize_t{sizeof report};
  close(ends[0]);
  if (keeper < 0) return io_error("cannot start " + run.command[0], error);
  while (lets_go_on(keeper, 0) || errno == EINTR) errno = 0;
  if (stop) return io_error("interrupted");
  if (!told) {
    if (began && program > 0) kill(-program, SIGKILL);
    return io_error("the process that keeps the run was killed; --resume goes on");
  }
  if (report.error != 0) return io_error("cannot start " + run.command[0], report.error);
  return report.end;
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

}  // namespace sealane::cli
