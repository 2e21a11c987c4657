// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Virtual time: a heap of events, ties broken by the order they were added, so that one seed is one
// history. Events are plain values; who adds one knows what its numbers mean.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace sealane::sim {

enum class EventKind : uint8_t {
  thread_runs,  // a: thread
  item_starts,  // a: hardware queue may look again
  kernel_ends,  // a: stream
  notify,       // a: stream, b: count the host learns of
  put,          // b: a call for copies has done its steps
  worker_done,  // b: what was sealed ahead
  sent,         // a: copy thread; the driver has a message of it
  crossed,      // a: copy thread; the driver's call has returned
  ending,       // a: copy thread; one ending is done
  timer,        // a hold may have ended
  driver_free,  // the driver's own copy path is free again, a: thread
  copy_done,    // off: b: call
};

struct SimEvent {
  Instant at;
  uint64_t order = 0;
  EventKind kind{};
  uint32_t a = 0;
  uint64_t b = 0;
};

class EventQueue {
 public:
  void add(Instant at, EventKind kind, uint32_t a = 0, uint64_t b = 0) {
    heap_.push_back({std::max(at, now_), added_++, kind, a, b});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  SimEvent pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const SimEvent event = heap_.back();
    heap_.pop_back();
    now_ = event.at;
    ++popped_;
    return event;
  }
  Instant now() const { return now_; }
  uint64_t popped() const { return popped_; }

 private:
  static bool later(const SimEvent& a, const SimEvent& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
  std::vector<SimEvent> heap_;
  Instant now_{};
  uint64_t added_ = 0;
  uint64_t popped_ = 0;
};

}  // namespace sealane::sim
