// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A host function that keeps a stream waiting until the test opens it: how these tests tell "not
// yet" from "done" without looking at a clock. Never put a host-device copy behind a closed gate:
// in confidential mode that call returns only when its stream has drained.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace sealane::test {

class Gate {
 public:
  ~Gate() { open(); }

  // Launch `wait` as a host function with a `ticket()`: one per launch. The waiting outlives the
  // gate if need be, and ends by itself after five minutes, so that a failed test ends.
  static void wait(void* ticket) {
    const std::unique_ptr<std::shared_ptr<State>> held(
        static_cast<std::shared_ptr<State>*>(ticket));
    State& state = **held;
    std::unique_lock lock(state.mutex);
    state.changed.wait_for(lock, std::chrono::minutes(5), [&] { return state.open; });
  }
  void* ticket() const { return new std::shared_ptr<State>(state_); }

  void open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace sealane::test
