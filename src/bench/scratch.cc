// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scratch.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace sealane::bench {
namespace {

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP};

sigset_t endings() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEndings) sigaddset(&set, signal);
  return set;
}

}  // namespace

Scratch::Scratch() {
  const sigset_t held = endings();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
  std::error_code ignored;
  std::string name = std::filesystem::temp_directory_path(ignored) / "sealane-bench-XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool interrupted() {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  for (const int signal : kEndings) {
    if (sigismember(&waiting, signal) == 1) return true;
  }
  return false;
}

void let_signals_end_this_process() {
  const sigset_t held = endings();
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

std::string last_line(const std::string& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace sealane::bench
