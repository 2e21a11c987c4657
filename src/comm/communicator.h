// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A group as programs use it: operations in the order they were asked for, waited for or not.
// Safe to use from several threads; but the order of operations must be the same on all ranks.
//
// An operation runs on the caller's thread when nothing is queued before it, and on one of the
// communicator's own threads otherwise. The first starts with the first asynchronous operation. A
// thread that has finished an operation calls back, and if that waits (for another operation of
// this group, say) the next thread goes on with the queue: there are two, and more only while that
// many callbacks wait. They sleep while there is nothing to do. Where no more threads can be made
// those there are go on, one callback after the other; with none at all, or from a callback while
// all there are call back, start() gives an error and the operation counts as never asked for.
//
// A group belongs to the process that joined it. A child made by fork() has neither its keys nor
// its connections: there every operation is a usage error, and ending the communicator is safe.
// What was started before the fork is the parent's to wait for.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "comm/fork_guard.h"
#include "comm/options.h"
#include "comm/runner.h"
#include "seal/secret_memory.h"

namespace sealane {

class Communicator final : private ForkSensitive {
 public:
  // Joins the group; blocks until all ranks are there or the time-out has passed.
  static Result<std::unique_ptr<Communicator>> create(JoinOptions options);
  ~Communicator();  // finishes what was started
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Status run(Operation operation);

  // `on_done`, if given, is called before the future is ready: on a thread of the communicator's,
  // or on the caller's, before start() returns, if the arguments are wrong or there is no thread.
  // It may start(), run() and wait for any future but its own; it must not end the communicator.
  // What it throws is logged and dropped. Callbacks of several operations can run at the same time.
  using OnDone = std::function<void(const Status&)>;
  std::shared_future<Status> start(Operation operation, OnDone on_done = {});

  // Ends the group, from any thread and without waiting: what runs and what is queued ends with an
  // error, and so it does on the other ranks when they hear of it, within a tenth of a second.
  void abort();

  // Why the group has ended, if it has. Where nothing runs it listens to the other ranks, too.
  std::optional<Error> failure();

  // Whether that rank has ended its part of the group. Where nothing runs it is listened to for
  // that, else it is what was heard before. A rank that is not of the group is gone.
  bool gone(uint32_t rank);

  // By what this rank and those can join another group, in which they have the numbers of their
  // places in `ranks`. Nobody else can pose as one of them there. A usage error in a child of
  // fork(), or unless this rank is one of them and all are different ones of the group.
  Result<PairKeys> pair_keys(const std::vector<uint32_t>& ranks) const;

  CommMode mode() const { return options_.mode; }
  const Identity& self() const { return options_.self; }
  uint64_t memory_bytes() const { return runner_ == nullptr ? 0 : runner_->memory_bytes(); }
  uint32_t awaited() const { return runner_ == nullptr ? kNobody : runner_->awaited(); }
  Traffic traffic() const { return runner_ == nullptr ? Traffic() : runner_->traffic(); }

 private:
  explicit Communicator(JoinOptions options);

  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;

  struct Queued {
    Operation operation;
    OnDone on_done;
    std::promise<Status> promise;
  };

  Status check_process() const;
  Status check(const Operation& operation) const;
  Status execute(Operation operation);
  Status copy(Operation& operation);
  void work();
  void listen();
  bool enqueue(Queued& queued);
  bool ensure_worker();
  bool somebody_is_free() const;
  bool add_worker();
  void retire_worker();
  void leave_turn();

  JoinOptions options_;
  pid_t process_;                              // that joined
  Secret<uint8_t> here_;                       // gone in every child, also one with the same number
  std::unique_ptr<Runner> runner_;             // none in a group of one, or after a fork
  std::vector<std::optional<Key>> pair_keys_;  // by rank; not alive after a fork

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool busy_ = false;  // somebody runs an operation
  bool ending_ = false;
  bool aborted_ = false;          // somebody asked for it
  std::optional<Error> failure_;  // of the runner's, for any thread
  std::vector<bool> gone_;        // likewise, by rank
  size_t idle_ = 0;               // workers that wait for something to do
  size_t calling_back_ = 0;       // workers in a callback
  std::vector<std::thread> workers_;
  std::vector<std::thread> ended_;  // past their last lock, to be joined
  ForkGuard guard_;                 // last: a fork must not find a half-made object
};

}  // namespace sealane
