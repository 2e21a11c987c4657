// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/worker_pool.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "os/pace.h"

namespace sealane {
namespace {

constexpr int kSpins = 2000;  // a few microseconds: shorter than waking a thread
constexpr int64_t kConsiderNs = 1'000'000'000;
constexpr auto kRestAfter = std::chrono::seconds(3);

int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Workers stay where the memory they work on is.
void keep_on(const CpuTopology& cores, pthread_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned core : cores.own) CPU_SET(core, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

thread_local bool a_worker = false;

}  // namespace

// Lives on its caller's stack. `next` hands out indices; `inside` counts the threads that may still
// touch the loop besides its caller: it is changed under the pool's mutex to come in, without it to
// go. `later` and `behind` are changed under the mutex.
struct WorkerPool::Loop {
  const size_t count;
  const Work body;
  void* const context;
  bool behind = false;
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> inside{0};
  Loop* later = nullptr;
  const uint64_t began = pace().begin();  // where its caller was on the modelled clock,
  std::atomic<uint64_t> ended{0};         // and the last of those that helped

  bool over() const { return next.load(std::memory_order_relaxed) >= count; }
  bool step() {
    const size_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= count) return false;
    body(context, index);
    return true;
  }
  // A helper takes part from when it was wanted or free. Returns when it is free again.
  template <typename Last>
  uint64_t help(uint64_t free_at, const Last& last) {
    pace().go_on_from(std::max(began, free_at));
    while (step() && !last()) {
    }
    free_at = pace().begin();
    uint64_t known = ended.load(std::memory_order_relaxed);
    while (free_at > known && !ended.compare_exchange_weak(known, free_at)) {
    }
    return free_at;
  }
};

void WorkerPool::run(size_t count, Work body, void* context) {
  while (backwards_ && count > 0) body(context, --count);
  Loop loop{count, body, context};
  if (at_work_ == 0 && count > 1) consider();
  const bool shared = count > 1 && share(loop);
  while (loop.step()) {
  }
  if (shared) withdraw(loop);
}

// Nobody waits for a job that a worker does. A job that somebody does who came to help is one that
// he waits for.
void WorkerPool::run_behind(size_t count, Work body, void* context) {
  if (!a_worker) return run(count, body, context);
  Loop loop{count, body, context, true};
  const bool shared = share(loop);
  do {
    give_way();
  } while (loop.step());
  if (shared) withdraw(loop);
}

// False: there is nobody to share it with.
bool WorkerPool::share(Loop& loop) {
  if (at_work_ == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_workers();
    if (at_work_ == 0) return false;
    if (!loop.behind) pressing_.fetch_add(1, std::memory_order_relaxed);
    Loop** end = &loops_;
    while (*end != nullptr) end = &(*end)->later;
    *end = &loop;
  }
  wake(loop.count == 2);
  return true;
}

// Returns when nobody touches the loop any more.
void WorkerPool::withdraw(Loop& loop) {
  {
    const std::lock_guard lock(mutex_);
    Loop** at = &loops_;
    while (*at != &loop) at = &(*at)->later;
    *at = loop.later;
    if (!loop.behind) pressing_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (int i = 0; i < kSpins && loop.inside.load(std::memory_order_acquire) != 0; ++i) {
    __builtin_ia32_pause();
  }
  for (uint32_t now = loop.inside.load(); now != 0; now = loop.inside.load()) {
    loop.inside.wait(now);
  }
  pace().go_on_from(std::max(pace().begin(), loop.ended.load()));
}

// With the mutex held: the oldest loop that has something left to do; it stays until leave().
WorkerPool::Loop* WorkerPool::join(Which which) {
  Loop* found = nullptr;
  for (Loop* loop = loops_; loop != nullptr; loop = loop->later) {
    if (loop->over() || (loop->behind && (which == Which::pressing || found != nullptr))) continue;
    found = loop;
    if (!loop->behind) break;
  }
  if (found != nullptr) found->inside.fetch_add(1);
  return found;
}

// The last touch: the caller may return as soon as it sees 0. The futex address is only a number to
// the kernel by then.
void WorkerPool::leave(Loop& loop) {
  if (loop.inside.fetch_sub(1, std::memory_order_release) == 1) loop.inside.notify_one();
}

void WorkerPool::give_way() {
  while (pressing_.load(std::memory_order_relaxed) != 0) {
    std::unique_lock lock(mutex_);
    Loop* loop = join(Which::pressing);
    if (loop == nullptr) return;
    lock.unlock();
    loop->help(pace().begin(), [] { return false; });
    leave(*loop);
  }
}

bool WorkerPool::help() {
  std::unique_lock lock(mutex_);
  Loop* mine = nullptr;
  for (Loop* loop = loops_; loop != nullptr; loop = loop->later) {
    if (!std::exchange(loop->behind, false)) continue;
    pressing_.fetch_add(1, std::memory_order_relaxed);
    if (mine == nullptr && !loop->over()) mine = loop;
  }
  if (mine != nullptr) {
    mine->inside.fetch_add(1);
    lock.unlock();
    wanted_.notify_all();
    mine->help(pace().begin(), [] { return false; });
    leave(*mine);
    return true;
  }
  if (jobs_.empty()) return false;
  const auto [job, context] = jobs_.front();
  jobs_.pop_front();
  lock.unlock();
  job(context);
  return true;
}

bool WorkerPool::post(Job job, void* context) {
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_workers();
    if (at_work_ == 0) return false;
    jobs_.emplace_back(job, context);
  }
  wake(true);
  return true;
}

// One is enough only if none of those that wait must not work.
void WorkerPool::wake(bool one) {
  if (one && at_work_ == workers_) {
    wanted_.notify_one();
  } else {
    wanted_.notify_all();
  }
}

void WorkerPool::abandon() {
  workers_ = 0;
  at_work_ = 0;
  if (quota_) quota_->forget();
}

// Our threads take no signals: those are for the program's handlers, on the program's threads.
void WorkerPool::start_workers() {
  started_ = true;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  unsigned running = 0;
  for (unsigned i = 0; i < workers_; ++i) {
    pthread_t thread;
    const auto body = [](void* given) -> void* {
      const std::unique_ptr<std::pair<WorkerPool*, unsigned>> self(
          static_cast<std::pair<WorkerPool*, unsigned>*>(given));
      self->first->work(self->second);
      return nullptr;
    };
    auto self = std::make_unique<std::pair<WorkerPool*, unsigned>>(this, i);
    if (pthread_create(&thread, nullptr, body, self.get()) != 0) break;
    static_cast<void>(self.release());  // the thread's now
    pthread_setname_np(thread, "sealane-worker");
    if (quota_ && quota_->cores().stay) keep_on(quota_->cores(), thread);
    pthread_detach(thread);
    threads_.push_back(thread);
    ++running;
  }
  workers_ = running;
  at_work_ = std::min<unsigned>(at_work_, running);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerPool::work(unsigned number) {
  a_worker = true;
  bool rested = false;
  uint64_t free_at = 0;  // on the modelled clock
  std::unique_lock lock(mutex_);
  for (;;) {
    Loop* loop = number < at_work_ ? join(Which::any) : nullptr;
    if (loop != nullptr) {
      const bool behind = loop->behind;
      lock.unlock();
      free_at = loop->help(
          free_at, [&] { return behind && pressing_.load(std::memory_order_relaxed) != 0; });
      leave(*loop);
    } else if (number < at_work_ && !jobs_.empty()) {
      const auto [job, context] = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      job(context);
      free_at = pace().begin();
    } else {
      wait_for_work(lock, number, rested);
      continue;
    }
    rested = false;
    if (quota_) consider();
    lock.lock();
  }
}

// The first worker notices that there has been nothing to do for a while, once.
void WorkerPool::wait_for_work(std::unique_lock<std::mutex>& lock, unsigned number, bool& rested) {
  if (quota_ == nullptr || number != 0 || rested) {
    wanted_.wait(lock);
    pace().go_on_now();
  } else if (wanted_.wait_for(lock, kRestAfter) == std::cv_status::no_timeout) {
    pace().go_on_now();
  } else {
    lock.unlock();
    rest();
    rested = true;
    lock.lock();
  }
}

// --- how many may work

void WorkerPool::consider() {
  if (!quota_) return;
  const int64_t now = nanoseconds(CLOCK_MONOTONIC_COARSE);
  int64_t due = consider_at_.load(std::memory_order_relaxed);
  if (now < due || !consider_at_.compare_exchange_strong(due, now + kConsiderNs)) return;
  const std::lock_guard alone(quota_mutex_);
  const unsigned may = quota_->consider(used_by_workers());
  const std::lock_guard lock(mutex_);
  // Jobs that were accepted are done: the last one never goes.
  at_work_ = std::min<unsigned>(std::max(may, std::min<unsigned>(at_work_, 1)), workers_);
  wanted_.notify_all();
}

void WorkerPool::rest() {
  const std::lock_guard alone(quota_mutex_);
  const unsigned may = quota_->rest();
  const std::lock_guard lock(mutex_);
  at_work_ = std::min<unsigned>(at_work_, std::max(may, 1u));
  consider_at_ = 0;  // the first who works asks for more
}

// Cores' worth of time since the last time.
double WorkerPool::used_by_workers() {
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(mutex_);
    threads = threads_;
  }
  double cpu_s = 0;
  for (const pthread_t thread : threads) {
    clockid_t clock{};
    if (pthread_getcpuclockid(thread, &clock) != 0) continue;
    cpu_s += static_cast<double>(nanoseconds(clock)) / 1e9;
  }
  const int64_t now = nanoseconds(CLOCK_MONOTONIC);
  const double passed_s = static_cast<double>(now - considered_) / 1e9;
  const double used = passed_s > 0 ? (cpu_s - cpu_s_) / passed_s : 0;
  cpu_s_ = cpu_s;
  considered_ = now;
  return used;
}

}  // namespace sealane
