// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's side of streams. Each stream is in order; the legacy stream of a context and its
// blocking ones wait for each other. Streams share hardware queues, and a queue hands out its items
// in the order they were submitted: an item that cannot start yet holds up every stream behind it
// in the same queue. A kernel leaves the queue when it starts, a wait when it is over. Copy engines
// and links are resources with a time at which they are free.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "sim/event_queue.h"
#include "sim/oracle.h"
#include "sim/timeline.h"
#include "workload/operation.h"

namespace sealane::sim {

enum class ItemKind : uint8_t {
  kernel,
  record,
  wait,
  hold,  // until a flag is raised
  mark,  // of the runtime: tells when everything before it is done
  gate,  // of the driver's own path: until a copy has landed
  word,  // of the runtime: until a word has grown to a value
  copy,
  work,  // writes host memory: see workload::StreamWork
};

struct Item {
  ItemKind kind{};
  uint32_t stream = 0;
  CallId call = kNoCall;                       // gate: the copy it waits for; wait: itself
  CallId record = kNoCall;                     // wait: what for
  Duration run_time{0};                        // kernel, and copies of the driver with CC off
  Instant not_before{};                        // when the host has handed it over
  Direction direction = Direction::to_device;  // copy
  uint64_t word = 0;                           // word: which; hold: the flag
  uint32_t value = 0;                          // word: what for
  workload::WorkKind work{};
  Range host{};  // work
};

class Device {
 public:
  Device(EventQueue& events, Oracle& oracle, Timeline& timeline, uint32_t hardware_queues)
      : events_(events),
        oracle_(oracle),
        timeline_(timeline),
        queues_(hardware_queues),
        wakes_(hardware_queues) {}

  // Before the stream's first item.
  void describe(uint32_t stream, uint32_t context, workload::StreamKind kind);
  void submit(const Item& item);
  void look_again() { run_all(); }    // item_starts
  void kernel_ends(uint32_t stream);  // kernel_ends
  void landed(CallId copy);           // opens gates
  void set_word(uint64_t word, uint32_t value);
  void raise(uint32_t flag);
  // Nothing of the context runs any more: what is queued is over without having been done.
  void fail(uint32_t context);
  bool failed(uint32_t context) const { return failed_.contains(context); }
  bool has_landed(CallId copy) const { return copy < landed_.size() && landed_[copy]; }
  // Who carries out work that writes host memory.
  void on_work(std::function<void(const Item&)> work) { work_ = std::move(work); }

  uint64_t done(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].done : 0;
  }
  uint64_t submitted(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].submitted : 0;
  }
  uint32_t streams() const { return static_cast<uint32_t>(streams_.size()); }
  uint32_t context(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].context : 0;
  }
  bool legacy(uint32_t stream) const {
    return stream < streams_.size() && streams_[stream].kind == workload::StreamKind::legacy;
  }
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
    uint32_t context = 0;
    workload::StreamKind kind = workload::StreamKind::non_blocking;
    uint64_t submitted = 0;
    uint64_t done = 0;
    bool busy = false;
    CallId running = kNoCall;
    std::vector<Watched> watched;
  };
  struct Behind {
    uint32_t stream;
    uint64_t count;
  };
  struct Queued {
    Item item;
    std::vector<Behind> behind;  // the legacy stream's rule
  };

  Stream& stream(uint32_t id);
  std::vector<Behind> rule_of_legacy(uint32_t stream) const;
  void run_all();
  void run(uint32_t queue);
  void start(const Item& item);
  bool may_start(const Item& item) const;
  void finish(uint32_t stream);

  EventQueue& events_;
  Oracle& oracle_;
  Timeline& timeline_;
  std::vector<Stream> streams_;
  std::vector<std::deque<Queued>> queues_;
  std::vector<Instant> wakes_;  // when a queue looks again by itself
  std::vector<bool> landed_;    // by call
  std::unordered_map<uint64_t, uint32_t> words_;
  std::set<uint64_t> raised_;
  std::set<uint32_t> failed_;  // contexts
  std::function<void(const Item&)> work_;
  std::array<Instant, 2> link_free_{};
  bool progress_ = false;
};

}  // namespace sealane::sim
