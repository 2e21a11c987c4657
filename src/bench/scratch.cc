// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scratch.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace sealane::bench {
namespace {

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP};

// What the living Scratch holds back. There is one at a time.
sigset_t held = [] {
  sigset_t none;
  sigemptyset(&none);
  return none;
}();

// A signal that is ignored (nohup), or that waits already, would not end this process: it is no
// interruption either.
sigset_t ending_signals() {
  sigset_t waiting;
  pthread_sigmask(SIG_BLOCK, nullptr, &waiting);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEndings) {
    struct sigaction action {};
    const bool ignored = sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!ignored && sigismember(&waiting, signal) == 0) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Scratch::Scratch() {
  held = ending_signals();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
  std::error_code ignored;
  std::string name = std::filesystem::temp_directory_path(ignored) / "sealane-bench-XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  sigemptyset(&held);
}

bool interrupted() {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  for (const int signal : kEndings) {
    if (sigismember(&held, signal) == 1 && sigismember(&waiting, signal) == 1) return true;
  }
  return false;
}

void let_signals_end_this_process() { pthread_sigmask(SIG_UNBLOCK, &held, nullptr); }

std::string last_line(const std::string& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace sealane::bench
