// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/last_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/above_standard.h"
#include "os/thread.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kOwnSignalWait_s = 10;  // for what is told; the thread that waits may hold its lock

// Set before the first handler, never changed.
struct {
  pid_t process = 0;
  int ends[2] = {-1, -1};  // of the pipe that wakes the thread
  struct stat pipe {};
} told;

// The signal that the system's own handling was put back for, to die of it.
std::atomic<int> ending{0};

// Everything was told, and a signal was sent again. The first one decides: whatever comes later
// has nothing left to wait for.
std::atomic<bool> sent_again{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a handler takes no locks");

void handle_signal(int signal, siginfo_t* info, void*);

bool is_default(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_DFL;
}

struct Installed {
  bool ours = false;
  bool informs = false;  // by a siginfo_t, which signal() does not put back with the handler
  bool spent = false;    // a handler for one signal, which has come: whose it was nobody says
  void (*restorer)() = nullptr;  // where a handler returns to that the kernel called
};

Installed installed(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0) return {};
  Installed what;
  what.ours = now.sa_sigaction == &handle_signal;
  what.informs = (now.sa_flags & SA_SIGINFO) != 0;
  const auto flags = static_cast<unsigned>(now.sa_flags);
  what.spent = now.sa_handler == SIG_DFL && (flags & SA_RESETHAND) != 0;
#if defined(__x86_64__)
  what.restorer = now.sa_restorer;
#endif
  return what;
}

// Pending until whoever blocks it lets it through, if this is the handler.
void die_of(int signal) {
  struct sigaction system {};
  system.sa_handler = SIG_DFL;
  if (installed(signal).ours) {
    ending = signal;
    ::sigaction(signal, &system, nullptr);
  }
  ::kill(::getpid(), signal);
}

// False: the program closed it, and the number may be a file of its own. Calls only what a handler
// may.
bool is_pipe(int end) {
  struct stat now {};
  return ::fstat(end, &now) == 0 && now.st_dev == told.pipe.st_dev &&
         now.st_ino == told.pipe.st_ino;
}

// False: not in time. Calls only what a handler may.
bool wait_until_sent_again() {
  constexpr timespec kPause{0, 1'000'000};
  timespec begin{};
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    ::nanosleep(&kPause, nullptr);
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t waited_s = now.tv_sec - begin.tv_sec - (now.tv_nsec < begin.tv_nsec ? 1 : 0);
    if (waited_s >= kOwnSignalWait_s) break;
  } while (!sent_again);
  return sent_again;
}

// Who keeps what signal() gave back may call that with one argument: then this points anywhere.
bool is_readable(const siginfo_t* info) {
  return ::access(reinterpret_cast<const char*>(info), F_OK) == 0 || errno != EFAULT;
}

// `info`: null where nobody knows who sent it.
void tell_and_die(int signal, const siginfo_t* info) {
  const auto byte = static_cast<unsigned char>(signal);
  const bool is_ours = ::getpid() == told.process;
  const bool waits =
      is_ours && info != nullptr && is_readable(info) && info->si_pid == told.process;
  const bool is_told = is_ours && is_pipe(told.ends[1]) && ::write(told.ends[1], &byte, 1) == 1;
  if (!is_told || (waits && !wait_until_sent_again())) die_of(signal);
}

// Where this is not what the program has installed, its own handler called it, and decides by
// itself how to end: to send the signal again would be to call that handler again, without end.
// Put back as System V's signal() does it, it is spent by the time the kernel calls it.
void handle_signal(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const Installed now = installed(signal);
  const bool by_kernel = now.restorer != nullptr &&
                         __builtin_return_address(0) == reinterpret_cast<void*>(now.restorer);
  if (now.ours || (now.spent && by_kernel)) {
    tell_and_die(signal, now.informs ? info : nullptr);
  } else if (ending == signal) {
    wait_until_sent_again();  // taken away a moment ago, to die
  }
  errno = error;
}

void tell_when_woken(void*) {
  unsigned char signal = 0;
  while (is_pipe(told.ends[0])) {
    const ssize_t got = ::read(told.ends[0], &signal, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return;
    tell_everything();
    die_of(signal);
    sent_again = true;
  }
}

}  // namespace

void watch_for_last_signals() {
  if (::pipe2(told.ends, O_CLOEXEC) != 0) return;
  for (int& end : told.ends) end = above_standard(end);
  if (told.ends[1] < 0 || ::fstat(told.ends[0], &told.pipe) != 0) return;
  told.process = ::getpid();
  if (!start_thread("sealane-signal", &tell_when_woken, nullptr)) return;
  for (const int signal : kSignals) {
    if (!is_default(signal)) continue;
    struct sigaction ours {};
    ours.sa_sigaction = &handle_signal;
    ours.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
  }
}

void tell_everything() {
  if (!watched()) return;  // also the child of a fork, where nobody could finish
  static std::once_flag once;
  std::call_once(once, [] { process().sinks.finish(); });
}

}  // namespace sealane::serve
