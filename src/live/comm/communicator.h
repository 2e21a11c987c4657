// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A group as programs use it: operations in the order they were asked for, waited for or not.
// Safe to use from several threads; but the order of operations must be the same on all ranks.
//
// An operation runs on the caller's thread when nothing is queued before it, and on the
// communicator's own thread otherwise. That thread starts with the first asynchronous operation and
// sleeps while there is none.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "live/comm/options.h"
#include "live/comm/runner.h"

namespace sealane {

class Communicator {
 public:
  // Joins the group; blocks until all ranks are there or the time-out has passed.
  static Result<std::unique_ptr<Communicator>> create(JoinOptions options);
  ~Communicator();  // finishes what was started
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Status run(Operation operation);

  // `on_done`, if given, is called on the communicator's thread before the future is ready.
  using OnDone = std::function<void(const Status&)>;
  std::shared_future<Status> start(Operation operation, OnDone on_done = {});

  const Identity& self() const { return options_.self; }
  uint64_t memory_bytes() const { return runner_ == nullptr ? 0 : runner_->memory_bytes(); }
  Traffic traffic() const { return runner_ == nullptr ? Traffic() : runner_->traffic(); }

 private:
  explicit Communicator(JoinOptions options) : options_(std::move(options)) {}

  struct Queued {
    Operation operation;
    OnDone on_done;
    std::promise<Status> promise;
  };

  Status check(const Operation& operation) const;
  Status execute(const Operation& operation);
  void work();

  JoinOptions options_;
  std::unique_ptr<Runner> runner_;  // none in a group of one

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool busy_ = false;  // somebody runs an operation
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace sealane
