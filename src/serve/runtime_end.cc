// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How the runtime waits, lets go, and ends.

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <new>

#include "base/log.h"
#include "os/thread.h"
#include "serve/runtime.h"

namespace sealane::serve {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

// A context of the program's is made to fail on a thread of its own: in a driver whose streams
// share one queue it could wait for the very gate that is to open behind it.
class Failing {
 public:
  Failing(GpuDriver& driver, ContextHandle context, uint64_t device_address)
      : driver_(driver), context_(context), device_address_(device_address) {}

  void work() {
    const std::shared_ptr<Failing> keep = std::move(self_);
    driver_.enter_thread();
    const Code code = driver_.fail_context(context_, device_address_);
    if (code != kSuccess) SEALANE_LOG(warn, "a context could not be made to fail: %d", code);
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  static void run(const std::shared_ptr<Failing>& one) {
    one->self_ = one;
    if (!start_thread<&Failing::work>("sealane-fail", one.get())) one->work();
    std::unique_lock lock(one->mutex_);
    if (!one->changed_.wait_for(lock, kPatience, [&] { return one->done_; })) {
      SEALANE_LOG(warn, "a context has no queue in which it could be made to fail");
    }
  }

 private:
  GpuDriver& driver_;
  const ContextHandle context_;
  const uint64_t device_address_;
  std::shared_ptr<Failing> self_;  // until the thread is done with it
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace

void Runtime::drain() {
  std::unique_lock lock(under_way_.mutex);
  under_way_.changed.wait(lock, [&] { return under_way_.copies.idle(); });
}

void Runtime::drain(ContextHandle context) {
  const auto key = reinterpret_cast<uint64_t>(context);
  std::unique_lock lock(under_way_.mutex);
  under_way_.changed.wait(lock, [&] { return under_way_.copies.idle(key); });
}

// Those who seal ahead go last: a copy that has just arrived is what they would begin with.
void Runtime::drain(Range range) {
  std::unique_lock lock(under_way_.mutex);
  do {
    under_way_.changed.wait(lock, [&] { return !under_way_.copies.touched(range); });
    if (aheads_.empty()) return;
    const std::vector<Ahead*> aheads = aheads_;
    lock.unlock();
    for (Ahead* ahead : aheads) ahead->freed(range);
    lock.lock();
  } while (under_way_.copies.busy(range));
}

// Nobody may wait for a word of a context that goes: first everything of the program's runs out.
bool Runtime::give_up_contexts() {
  std::set<const CopyThread*> leaving;
  {
    const std::lock_guard lock(under_way_.mutex);
    for (const auto& thread : threads_) {
      if (thread) leaving.insert(thread.get());
    }
    if (leaving.empty()) return false;
    under_way_.copies.handle_threads_gone();
  }
  { const std::unique_lock nobody_asks(carrying_); }
  drain();
  std::set<ContextHandle> contexts;
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) contexts.insert(stream->context);
  }
  for (const ContextHandle context : contexts) driver_.synchronise(context);
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      for (StreamGates& gates : stream->gates) {
        if (!leaving.contains(gates.thread)) continue;
        gates.thread = nullptr;
        gates.word = {};
      }
    }
  }
  std::vector<std::unique_ptr<CopyThread>> gone;
  {
    const std::lock_guard lock(under_way_.mutex);
    for (auto& thread : threads_) {
      if (leaving.contains(thread.get())) gone.push_back(std::move(thread));
    }
  }
  for (auto& thread : gone) {
    if (thread->ahead() != nullptr) thread->ahead()->stop();
    thread->close();
    const std::lock_guard lock(under_way_.mutex);
    retired_.push_back(std::move(thread));
  }
  return true;
}

// What stands behind a copy that failed must not run: not one of the program's own contexts has
// failed, but one of ours. So the driver is made to fail the program's before the gate opens. It is
// known to every call by then, and copies behind it are refused, whether that succeeds or not.
void Runtime::fail_context(ContextHandle context, uint64_t device_address) {
  std::shared_ptr<Failing> failing;
  try {
    failing = std::make_shared<Failing>(driver_, context, device_address);
  } catch (const std::bad_alloc&) {  // then on this one
    driver_.fail_context(context, device_address);
  }
  if (failing) Failing::run(failing);
}

void Runtime::step_aside(const char* why) {
  if (aside_.exchange(true)) return;
  std::fprintf(stderr, "sealane: stepping aside, copies are the driver's again: %s\n", why);
}

}  // namespace sealane::serve
