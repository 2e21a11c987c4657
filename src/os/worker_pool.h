// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Worker threads that share one loop at a time with whoever calls for it, and do jobs of their own
// when there is none. The caller of a loop always takes part, so a pool that is busy, has no
// threads or could not start any is slow, never stuck.
//
// What comes first: loops, then loops of jobs (which give way at every index), then new jobs. So
// nobody who needs a loop waits for a job longer than one index of it takes, and what a job has
// begun is finished by all before the next one is begun.
//
// Threads: run() from any thread, also several at once; loops of different callers share the
// workers. Workers start with the first loop that wants them and sleep when there is nothing to do
// (after a spin of a few microseconds). With a WorkerQuota a worker asks it about once a second how
// many may be at work; the others sleep. In the child of a fork() there are none, and no pool is
// used: abandon() says so.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "os/worker_quota.h"

namespace sealane {

class WorkerPool {
 public:
  explicit WorkerPool(unsigned workers) : workers_(workers), at_work_(workers) {}
  // For tests of who must not depend on an order: a pool of this size whose caller does it all, the
  // last index first.
  struct Backwards {
    unsigned size;
  };
  explicit WorkerPool(Backwards pool)
      : backwards_(true), workers_(pool.size - 1), at_work_(pool.size - 1) {}
  explicit WorkerPool(std::unique_ptr<WorkerQuota> quota)  // as many as it says
      : quota_(std::move(quota)), workers_(quota_->workers_max()), at_work_(quota_->consider(0)) {}

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

  unsigned size() const { return at_work_ + 1; }  // threads that share a loop
  // Where its workers run.
  CpuTopology cores() const { return quota_ != nullptr ? quota_->cores() : read_cpu_topology(); }
  void abandon();  // the threads are gone: after fork

 private:
  struct Loop;
  enum class Which : uint8_t { pressing, any };
  void run_behind(size_t count, Work body, void* context);
  void start_workers();
  void work(unsigned number);
  void wait_for_work(std::unique_lock<std::mutex>& lock, unsigned number, bool& rested);
  bool share(Loop& loop);
  void withdraw(Loop& loop);
  Loop* join(Which which);
  static void leave(Loop& loop);
  void give_way();
  void wake(bool one);
  // Asks the quota, if it is time to.
  void consider();
  void rest();
  double used_by_workers();

  const bool backwards_ = false;
  const std::unique_ptr<WorkerQuota> quota_;
  std::atomic<unsigned> workers_;  // that there are
  std::atomic<unsigned> at_work_;  // that may work: those with the lowest numbers
  std::atomic<int64_t> consider_at_{0};
  std::mutex quota_mutex_;          // before mutex_
  std::vector<pthread_t> threads_;  // they never end
  double cpu_s_ = 0;                // of the workers, when last considered
  int64_t considered_ = 0;          // and when that was
  std::mutex mutex_;
  std::condition_variable wanted_;
  Loop* loops_ = nullptr;              // shared, oldest first
  std::atomic<unsigned> pressing_{0};  // of those, how many are not behind
  std::deque<std::pair<Job, void*>> jobs_;
  bool started_ = false;
};

}  // namespace sealane
