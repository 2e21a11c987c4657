// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When an operation of a group begins, where continuations call operations too. All ranks must run
// the same ones in the same order, but a continuation runs when its operation happens to end:
// beside the next calls of the program, on any rank a little earlier or later. So the order is not
// that of time: what a continuation calls comes right after the operation it hangs on, before
// whatever the program called next (depth first). That is also the order of a rank where the
// operation has ended before anything was hung on it, whose continuation then runs in the program's
// own thread.
//
// It takes that the program hangs a continuation on an operation before it calls the next: an
// operation whose future is asked for while it is the last one holds back its successors until its
// continuations have ended. If the future is asked for later, nobody waits, and what a continuation
// calls comes last, in order of time.
//
// A continuation that waits for an operation that it holds back lets it go on: see await().
//
// Concurrency: any thread. `begin` and continuations run with no lock held; those that begin do so
//              one after the other. Pure but for that: knows neither PyTorch nor the library.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace sealane::adapter {

class Turns {
 public:
  // One operation; and, while its continuations run, the program that calls others.
  struct Turn {
    std::function<void()> begin;
    std::shared_ptr<Turn> caller;
    std::shared_ptr<Turn> last;                 // that was called from here
    std::shared_ptr<Turn> blocker;              // called from here, begun, holds back the rest
    std::deque<std::shared_ptr<Turn>> waiting;  // called from here, for `blocker`
    bool begun = false;
    bool holds = false;     // back its successors, until it is over
    bool returned = false;  // its continuations have
  };
  using Pointer = std::shared_ptr<Turn>;

  Turns();

  // A call, by the continuation that runs on this thread or by the program. `begin` starts the
  // operation, here or on a thread that has ended another; it must not throw.
  void add(const Pointer& turn, std::function<void()> begin);

  // Something may be hung on it. To be called before end(), with a lock that end() is called with.
  void expect_continuation(const Pointer& turn);

  // The operation has ended. If it holds back others they wait for its continuations still.
  void end(const Pointer& turn);

  // After end(): runs what hangs on the operation, then lets the successors begin.
  void run_continuations(const Pointer& turn, const std::function<void()>& continuations);

  // The calling continuation is about to wait for that operation: it no longer holds it back.
  void await(const Pointer& turn);

  // All that was added has ended. Before the group ends, whose threads they run on.
  void wait_for_all();

 private:
  bool forked() const;
  void begin_ready(std::unique_lock<std::mutex>& lock);
  void hand_over();
  void advance(const Pointer& caller);
  void settle(Pointer turn);

  const pid_t process_;  // in a child nobody ends what was begun: nothing is held back there
  std::mutex mutex_;
  std::condition_variable changed_;
  Pointer program_ = std::make_shared<Turn>();
  std::deque<Pointer> ready_;
  std::thread::id beginner_;  // sees to `ready_`
  size_t unfinished_ = 0;
};

}  // namespace sealane::adapter
