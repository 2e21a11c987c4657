// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Something that could wait for the very thing its caller has to do next, on a thread of its own:
// the caller waits for a moment only. Without a thread to be had it is done on the caller's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/log.h"
#include "os/thread.h"
#include "serve/gpu_driver.h"

namespace sealane::serve {

class Errand {
 public:
  static constexpr auto kPatience = std::chrono::seconds(2);

  Errand(GpuDriver& driver, std::function<void()> work) : driver_(driver), work_(std::move(work)) {}

  // False: it is not done yet, and goes on alone.
  static bool send(const std::shared_ptr<Errand>& one) {
    one->self_ = one;
    if (!start_thread<&Errand::run>("sealane-errand", one.get())) one->run();
    std::unique_lock lock(one->mutex_);
    return one->changed_.wait_for(lock, kPatience, [&] { return one->done_; });
  }

  void run() {
    const std::shared_ptr<Errand> keep = std::move(self_);
    driver_.enter_thread();
    work_();
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

 private:
  GpuDriver& driver_;
  const std::function<void()> work_;
  std::shared_ptr<Errand> self_;  // until the thread is done with it
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

// What stands behind a copy that failed must not run: not one of the program's own contexts has
// failed, but one of ours. So the driver is made to fail the program's, before the gate opens. Who
// calls has told the machine: copies behind it are refused, whether that succeeds or not. In a
// driver whose streams share one queue it could wait for the very gate that is to open behind it.
inline void fail_context(GpuDriver& driver, ContextHandle context, uint64_t device_address) {
  const auto fail = [&driver, context, device_address] {
    const Code code = driver.fail_context(context, device_address);
    if (code != kSuccess) SEALANE_LOG(warn, "a context could not be made to fail: %d", code);
  };
  std::shared_ptr<Errand> errand;
  try {
    errand = std::make_shared<Errand>(driver, fail);
  } catch (const std::bad_alloc&) {  // then on this one
    return fail();
  }
  if (!Errand::send(errand)) {
    SEALANE_LOG(warn, "a context has no queue in which it could be made to fail");
  }
}

}  // namespace sealane::serve
