// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's side of streams. Each stream is in order; streams share hardware queues, and a queue
// hands out its items in the order they were submitted: an item that cannot start yet holds up
// every stream behind it in the same queue. A kernel leaves the queue when it starts, a wait when
// it is over. Copy engines and links are resources with a time at which they are free.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "sim/event_queue.h"
#include "sim/oracle.h"
#include "sim/timeline.h"

namespace sealane::sim {

enum class ItemKind : uint8_t { kernel, record, wait, gate, copy };

struct Item {
  ItemKind kind{};
  uint32_t stream = 0;
  CallId call = kNoCall;                       // gate: the copy it waits for; wait: itself
  CallId record = kNoCall;                     // wait: what for
  Duration run_time{0};                        // kernel, and copies of the driver with CC off
  Instant not_before{};                        // when the host has handed it over
  Direction direction = Direction::to_device;  // copy
};

class Device {
 public:
  Device(EventQueue& events, Oracle& oracle, Timeline& timeline, uint32_t hardware_queues)
      : events_(events),
        oracle_(oracle),
        timeline_(timeline),
        queues_(hardware_queues),
        wakes_(hardware_queues) {}

  void submit(const Item& item);
  void look_again();                  // item_starts
  void kernel_ends(uint32_t stream);  // kernel_ends
  void landed(CallId copy);           // opens gates
  bool has_landed(CallId copy) const { return copy < landed_.size() && landed_[copy]; }

  uint64_t done(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].done : 0;
  }
  uint64_t submitted(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].submitted : 0;
  }
  uint32_t streams() const { return static_cast<uint32_t>(streams_.size()); }
  bool drained(uint32_t stream) const { return done(stream) == submitted(stream); }
  // notify(stream, count) is added as an event when `count` items of the stream are done.
  void watch(uint32_t stream, uint64_t count, Duration latency);

  // Takes the link for `busy` when it is free; returns when the bytes are across.
  Instant transfer(Direction direction, Instant earliest, Duration busy);

 private:
  struct Watched {
    uint64_t count;
    Duration latency;
  };
  struct Stream {
    uint64_t submitted = 0;
    uint64_t done = 0;
    bool busy = false;
    CallId running = kNoCall;
    std::vector<Watched> watched;
  };

  Stream& stream(uint32_t id);
  void run_all();
  void run(uint32_t queue);
  bool start(const Item& item);
  void finish(uint32_t stream);

  EventQueue& events_;
  Oracle& oracle_;
  Timeline& timeline_;
  std::vector<Stream> streams_;
  std::vector<std::deque<Item>> queues_;
  std::vector<Instant> wakes_;  // when a queue looks again by itself
  std::vector<bool> landed_;    // by call
  std::array<Instant, 2> link_free_{};
  bool recorded_ = false;
};

}  // namespace sealane::sim
