// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Work in the program's streams that may write host memory, or let the host write it, when its turn
// comes: host functions, graphs, waits that the host ends. A copy from pinned memory that is
// ordered behind such work must carry what that has written. So while any of it is under way, no
// copy from pinned memory may be answered with what was sealed before: nobody can tell by its guard
// now what it will hold then.
//
// Kept as one event per stream, behind the latest such work. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "live/serve/gpu_driver.h"
#include "live/serve/lane.h"

namespace sealane::serve {

class Unsettled {
 public:
  explicit Unsettled(GpuDriver& driver) : driver_(driver) {}

  // `stream` is any name of it that lasts as long as it does.
  void add(uint64_t stream, ContextHandle context, std::shared_ptr<const EventLease> behind) {
    const std::lock_guard lock(mutex_);
    latest_[stream] = {context, std::move(behind)};
  }

  bool any() {
    const std::lock_guard lock(mutex_);
    std::erase_if(latest_, [&](const auto& entry) {
      return driver_.query(entry.second.behind->event) != kNotReady;
    });
    return !latest_.empty();
  }

  void forget(ContextHandle context) {
    const std::lock_guard lock(mutex_);
    std::erase_if(latest_, [&](const auto& entry) { return entry.second.context == context; });
  }

 private:
  struct Work {
    ContextHandle context;
    std::shared_ptr<const EventLease> behind;
  };
  GpuDriver& driver_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Work> latest_;
};

}  // namespace sealane::serve
