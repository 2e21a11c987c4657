// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A host function that keeps a stream waiting until the test opens it: how these tests tell "not
// yet" from "done" without looking at a clock. Never put a host-device copy behind a closed gate:
// in confidential mode that call returns only when its stream has drained.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sealane::test {

class Gate {
 public:
  ~Gate() { open(); }

  // Give this and the gate itself to cuLaunchHostFunc or cudaLaunchHostFunc. Passes by itself after
  // a minute, so that a failed test ends.
  static void wait(void* gate) { static_cast<Gate*>(gate)->wait_open(); }

  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  void wait_open() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [this] { return open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace sealane::test
