// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Worker threads that share one loop at a time with whoever calls for it, and do jobs of their own
// when there is none. The caller of a loop always takes part, so a crew that is busy, has no
// threads or could not start any is slow, never stuck.
//
// What comes first: loops, then loops of jobs (which give way at every index), then new jobs. So
// nobody who needs a loop waits for a job longer than one index of it takes, and what a job has
// begun is finished by all before the next one is begun.
//
// Threads: run() from any thread, also several at once; loops of different callers share the
// workers. Workers start with the first loop that wants them and sleep when there is nothing to do
// (after a spin of a few microseconds). In the child of a fork() there are none: abandon() says so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace sealane::serve {

class Crew {
 public:
  explicit Crew(unsigned workers) : workers_(workers) {}

  // Calls body(context, i) once for every i below count, spread over the caller and the workers;
  // returns when all calls have returned. `body` must not throw.
  using Work = void (*)(void* context, size_t index);
  void run(size_t count, Work body, void* context);

  template <typename Body>
  void each(size_t count, const Body& body) {
    const auto call = [](void* context, size_t index) {
      (*static_cast<const Body*>(context))(index);
    };
    run(count, call, const_cast<Body*>(&body));
  }

  // A job of its own for a worker that no loop wants; jobs begin in the order they are posted.
  // False: there are no workers, nobody will do it.
  using Job = void (*)(void* context);
  bool post(Job job, void* context);
  // Like each(), but only within a job, and behind all other loops until somebody waits for it.
  template <typename Body>
  void each_behind(size_t count, const Body& body) {
    const auto call = [](void* context, size_t index) {
      (*static_cast<const Body*>(context))(index);
    };
    run_behind(count, call, const_cast<Body*>(&body));
  }
  // Somebody waits for the jobs and lends a hand: the loops of those begun come first now; does a
  // part of one, or a job. False: there is none to do.
  bool help();

  unsigned size() const { return workers_ + 1; }  // threads that share a loop
  void abandon() { workers_ = 0; }                // the threads are gone: after fork

 private:
  struct Loop;
  enum class Which : uint8_t { pressing, any };
  void run_behind(size_t count, Work body, void* context);
  void start_workers();
  void work();
  void share(Loop& loop);
  void withdraw(Loop& loop);
  Loop* join(Which which);
  static void leave(Loop& loop);
  void give_way();

  std::atomic<unsigned> workers_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  Loop* loops_ = nullptr;              // shared, oldest first
  std::atomic<unsigned> pressing_{0};  // of those, how many are not behind
  std::deque<std::pair<Job, void*>> jobs_;
  bool started_ = false;
};

}  // namespace sealane::serve
