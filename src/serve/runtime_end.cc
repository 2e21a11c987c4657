// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How the runtime waits, lets go, and ends.

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <new>

#include "base/log.h"
#include "os/thread.h"
#include "serve/runtime.h"

namespace sealane::serve {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

// Something that could wait for the very thing its caller has to do next, on a thread of its own.
class Errand {
 public:
  Errand(GpuDriver& driver, std::function<void()> work) : driver_(driver), work_(std::move(work)) {}

  void run() {
    const std::shared_ptr<Errand> keep = std::move(self_);
    driver_.enter_thread();
    work_();
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  // False: it is not done yet, and goes on alone.
  static bool send(const std::shared_ptr<Errand>& one) {
    one->self_ = one;
    if (!start_thread<&Errand::run>("sealane-errand", one.get())) one->run();
    std::unique_lock lock(one->mutex_);
    return one->changed_.wait_for(lock, kPatience, [&] { return one->done_; });
  }

 private:
  GpuDriver& driver_;
  const std::function<void()> work_;
  std::shared_ptr<Errand> self_;  // until the thread is done with it
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

// A copy thread may go when it has nothing to do and no stream of the program can still have to
// look at one of its words. What holds a stream may be the caller's to end: nobody waits for that
// longer than a moment, and what it concerns stays.
bool Runtime::give_up_contexts() {
  {
    const std::lock_guard lock(under_way_.mutex);
    if (std::none_of(threads_.begin(), threads_.end(), [](const auto& each) { return !!each; })) {
      return false;
    }
    under_way_.copies.handle_threads_gone();
  }
  { const std::unique_lock nobody_asks(carrying_); }
  const std::set<const CopyThread*> staying = find_busy_threads();
  std::vector<std::unique_ptr<CopyThread>> gone;
  {
    const std::lock_guard lock(under_way_.mutex);
    for (CopyThreadId id = 0; id < threads_.size(); ++id) {
      if (!threads_[id]) continue;
      if (staying.contains(threads_[id].get())) {
        under_way_.copies.handle_thread(id, true, threads_[id]->ahead());
      } else {
        gone.push_back(std::move(threads_[id]));
      }
    }
  }
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      for (StreamGates& gates : stream->gates) {
        if (gates.thread == nullptr || staying.contains(gates.thread)) continue;
        gates.thread = nullptr;
        gates.word = {};
      }
    }
  }
  const bool any = !gone.empty();
  for (auto& thread : gone) {
    if (thread->ahead() != nullptr) thread->ahead()->stop();
    thread->close();
    const std::lock_guard lock(under_way_.mutex);
    retired_.push_back(std::move(thread));
  }
  return any;
}

// Those that have something to do after a moment, and those for whose words a stream may wait.
std::set<const CopyThread*> Runtime::find_busy_threads() {
  std::set<const CopyThread*> busy;
  {
    std::unique_lock lock(under_way_.mutex);
    under_way_.changed.wait_for(lock, kPatience, [&] { return under_way_.copies.idle(); });
    for (CopyThreadId id = 0; id < threads_.size(); ++id) {
      if (under_way_.copies.threads().pending(id) > 0) busy.insert(threads_[id].get());
    }
  }
  std::map<ContextHandle, std::set<const CopyThread*>> waited_for;
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      for (const StreamGates& gates : stream->gates) {
        if (gates.thread != nullptr) waited_for[stream->context].insert(gates.thread);
      }
    }
  }
  for (const auto& [context, threads] : waited_for) {
    const auto errand = std::make_shared<Errand>(
        driver_, [this, context = context] { driver_.synchronise(context); });
    if (!Errand::send(errand)) busy.insert(threads.begin(), threads.end());
  }
  return busy;
}

// What stands behind a copy that failed must not run: not one of the program's own contexts has
// failed, but one of ours. So the driver is made to fail the program's before the gate opens. It is
// known to every call by then, and copies behind it are refused, whether that succeeds or not. In a
// driver whose streams share one queue it could wait for the very gate that is to open behind it.
void Runtime::fail_context(ContextHandle context, uint64_t device_address) {
  const auto fail = [this, context, device_address] {
    const Code code = driver_.fail_context(context, device_address);
    if (code != kSuccess) SEALANE_LOG(warn, "a context could not be made to fail: %d", code);
  };
  std::shared_ptr<Errand> errand;
  try {
    errand = std::make_shared<Errand>(driver_, fail);
  } catch (const std::bad_alloc&) {  // then on this one
    return fail();
  }
  if (!Errand::send(errand)) {
    SEALANE_LOG(warn, "a context has no queue in which it could be made to fail");
  }
}

void Runtime::step_aside(const char* why) {
  if (aside_.exchange(true)) return;
  std::fprintf(stderr, "sealane: stepping aside, copies are the driver's again: %s\n", why);
}

}  // namespace sealane::serve
