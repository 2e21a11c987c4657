// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/crew.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace sealane::serve {
namespace {

constexpr int kSpins = 2000;  // a few microseconds: shorter than waking a thread

thread_local bool a_worker = false;

}  // namespace

// Lives on its caller's stack. `next` hands out indices; `inside` counts the threads that may still
// touch the loop besides its caller: it is changed under the crew's mutex to come in, without it to
// go. `later` and `behind` are changed under the mutex.
struct Crew::Loop {
  const size_t count;
  const Work body;
  void* const context;
  bool behind = false;
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> inside{0};
  Loop* later = nullptr;

  bool over() const { return next.load(std::memory_order_relaxed) >= count; }
  bool step() {
    const size_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= count) return false;
    body(context, index);
    return true;
  }
};

void Crew::run(size_t count, Work body, void* context) {
  Loop loop{count, body, context};
  const bool shared = count > 1 && workers_ > 0;
  if (shared) share(loop);
  while (loop.step()) {
  }
  if (shared) withdraw(loop);
}

// Nobody waits for a job that a worker does. A job that somebody does who came to help is one that
// he waits for.
void Crew::run_behind(size_t count, Work body, void* context) {
  if (!a_worker) return run(count, body, context);
  Loop loop{count, body, context, true};
  share(loop);
  do {
    give_way();
  } while (loop.step());
  withdraw(loop);
}

void Crew::share(Loop& loop) {
  if (!loop.behind) pressing_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_workers();
    Loop** end = &loops_;
    while (*end != nullptr) end = &(*end)->later;
    *end = &loop;
  }
  if (loop.count == 2) {
    wanted_.notify_one();
  } else {
    wanted_.notify_all();
  }
}

// Returns when nobody touches the loop any more.
void Crew::withdraw(Loop& loop) {
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
}

// With the mutex held: the oldest loop that has something left to do; it stays until leave().
Crew::Loop* Crew::join(Which which) {
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
void Crew::leave(Loop& loop) {
  if (loop.inside.fetch_sub(1, std::memory_order_release) == 1) loop.inside.notify_one();
}

void Crew::give_way() {
  while (pressing_.load(std::memory_order_relaxed) != 0) {
    std::unique_lock lock(mutex_);
    Loop* loop = join(Which::pressing);
    if (loop == nullptr) return;
    lock.unlock();
    while (loop->step()) {
    }
    leave(*loop);
  }
}

bool Crew::help() {
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
    while (mine->step()) {
    }
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

bool Crew::post(Job job, void* context) {
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_workers();
    if (workers_ == 0) return false;
    jobs_.emplace_back(job, context);
  }
  wanted_.notify_one();
  return true;
}

// Our threads take no signals: those are for the program's handlers, on the program's threads.
void Crew::start_workers() {
  started_ = true;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  unsigned running = 0;
  for (unsigned i = 0; i < workers_; ++i) {
    pthread_t thread;
    const auto body = [](void* self) -> void* {
      static_cast<Crew*>(self)->work();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, body, this) != 0) break;
    pthread_setname_np(thread, "sealane-worker");
    pthread_detach(thread);
    ++running;
  }
  workers_ = running;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Crew::work() {
  a_worker = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (Loop* loop = join(Which::any)) {
      const bool behind = loop->behind;
      lock.unlock();
      while (loop->step() && (!behind || pressing_.load(std::memory_order_relaxed) == 0)) {
      }
      leave(*loop);
      lock.lock();
    } else if (!jobs_.empty()) {
      const auto [job, context] = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      job(context);
      lock.lock();
    } else {
      wanted_.wait(lock);
    }
  }
}

}  // namespace sealane::serve
