// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/crew.h"

#include <pthread.h>
#include <signal.h>

#include <thread>

namespace sealane::serve {
namespace {

constexpr int kSpins = 2000;  // a few microseconds: shorter than waking a thread

}  // namespace

// Lives on its caller's stack. `next` hands out indices; `inside` counts the threads that may still
// touch the loop besides its caller: it is changed under the crew's mutex to come in, without it to
// go.
struct Crew::Loop {
  const size_t count;
  const Work work;
  void* const context;
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> inside{0};
  Loop* later = nullptr;

  bool step() {
    const size_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= count) return false;
    work(context, index);
    return true;
  }
};

void Crew::run(size_t count, Work work, void* context) {
  Loop loop{count, work, context};
  const bool shared = count > 1 && share(loop);
  while (loop.step()) {
  }
  if (!shared) return;
  {
    const std::lock_guard lock(mutex_);
    for (Loop** at = &loops_; *at != nullptr; at = &(*at)->later) {
      if (*at != &loop) continue;
      *at = loop.later;
      break;
    }
  }
  for (int i = 0; i < kSpins && loop.inside.load(std::memory_order_acquire) != 0; ++i) {
    __builtin_ia32_pause();
  }
  for (uint32_t now = loop.inside.load(); now != 0; now = loop.inside.load()) {
    loop.inside.wait(now);
  }
}

// False: there is nobody to share it with.
bool Crew::share(Loop& loop) {
  if (workers_ == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_workers();
    if (workers_ == 0) return false;
    Loop** end = &loops_;
    while (*end != nullptr) end = &(*end)->later;
    *end = &loop;
  }
  if (loop.count == 2) {
    wanted_.notify_one();
  } else {
    wanted_.notify_all();
  }
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
      static_cast<Crew*>(self)->serve_loops();
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

void Crew::serve_loops() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [&] { return loops_ != nullptr || !jobs_.empty(); });
    if (loops_ == nullptr) {
      const auto [job, context] = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      job(context);
      lock.lock();
      continue;
    }
    Loop& loop = *loops_;
    if (loop.next.load(std::memory_order_relaxed) >= loop.count) {  // its caller will unlink it too
      loops_ = loop.later;
      continue;
    }
    loop.inside.fetch_add(1);
    lock.unlock();
    while (loop.step()) {
    }
    // The last touch: the caller may return as soon as it sees 0. The futex address is only a
    // number to the kernel by then.
    if (loop.inside.fetch_sub(1, std::memory_order_release) == 1) loop.inside.notify_one();
    lock.lock();
  }
}

}  // namespace sealane::serve
