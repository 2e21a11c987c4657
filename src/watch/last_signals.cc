// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/last_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "os/thread.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Set before the first handler, never changed.
struct {
  pid_t process = 0;
  int ends[2] = {-1, -1};  // of the pipe that wakes the thread
} told;

bool is_default(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_DFL;
}

void handle_signal(int signal);

// Pending until whoever blocks it lets it through, if this is the handler.
void die_of(int signal) {
  struct sigaction now {};
  const bool ours = ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
                    now.sa_handler == &handle_signal;
  struct sigaction system {};
  system.sa_handler = SIG_DFL;
  if (ours) ::sigaction(signal, &system, nullptr);
  ::kill(::getpid(), signal);
}

void handle_signal(int signal) {
  const int number = errno;
  const auto byte = static_cast<unsigned char>(signal);
  if (::getpid() != told.process || ::write(told.ends[1], &byte, 1) != 1) die_of(signal);
  errno = number;
}

void tell_when_woken(void*) {
  unsigned char signal = 0;
  for (;;) {
    const ssize_t got = ::read(told.ends[0], &signal, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return;
    tell_everything();
    die_of(signal);
  }
}

}  // namespace

void watch_for_last_signals() {
  if (::pipe2(told.ends, O_CLOEXEC) != 0) return;
  told.process = ::getpid();
  if (!start_thread("sealane-signal", &tell_when_woken, nullptr)) return;
  for (const int signal : kSignals) {
    if (!is_default(signal)) continue;
    struct sigaction ours {};
    ours.sa_handler = &handle_signal;
    ours.sa_flags = SA_RESTART;
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
