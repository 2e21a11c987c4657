// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the player has seen of its run: printed when it is certain, each kind once. Any thread.
//
// Wrong bytes on the device are only suspected: a copy that fails is told to the program by the
// next call that synchronises with it, and kernels between the two may have run on whatever was
// there. If that call succeeds, they were delivered.
#pragma once

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

namespace sealane::test {

class Findings {
 public:
  void violation(const std::string& text) { note("violation: " + text, violated_); }
  void error(const std::string& text) { note("error: " + text, failed_); }
  bool over() const { return failed_.load() || violated_.load(); }

  // The copy of this operation did not bring what it should have.
  void suspect(size_t operation) {
    const std::lock_guard lock(mutex_);
    suspects_.push_back(operation);
  }
  // A call has succeeded that synchronises with the operations of which `covered` is true.
  template <typename Covered>
  void synchronised(const Covered& covered) {
    const std::lock_guard lock(mutex_);
    for (const size_t operation : suspects_) {
      if (covered(operation)) confirm(operation);
    }
  }
  // The program has ended.
  void finish() {
    if (!failed_.load()) synchronised([](size_t) { return true; });
  }

 private:
  void confirm(size_t operation) {
    violation("wrong bytes on the device after operation " + std::to_string(operation));
  }
  void note(const std::string& line, std::atomic<bool>& seen) {
    if (!seen.exchange(true)) std::printf("%s\n", line.c_str());
  }
  std::atomic<bool> violated_{false};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::vector<size_t> suspects_;
};

// Never destroyed: threads of the device may report to the end.
inline Findings& findings() {
  static Findings& made = *new Findings;
  return made;
}

}  // namespace sealane::test
