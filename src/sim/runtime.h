// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The simulated `live`: drives core/pipeline and core/order. Workers seal and open, each lane has a
// thread that sends its messages one after the other, one more thread brings back what comes from
// the device. Costs come from the platform; decisions come from the core.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/order/order.h"
#include "core/pipeline/pipeline.h"
#include "platform/cost.h"
#include "sim/world.h"

namespace sealane::sim {

struct ProgramCopy {
  CallId call = kNoCall;
  uint32_t stream = 0;
  Direction direction = Direction::to_device;
  Range host;
  uint64_t device = 0;
  MemoryKind memory = MemoryKind::pinned;
  bool sync = false;
};

inline HostMemory host_memory(MemoryKind kind) {
  return kind == MemoryKind::pinned ? HostMemory::pinned : HostMemory::pageable;
}

// What the device is to do for a call that is not a carried copy.
struct ProgramCall {
  ItemKind kind{};
  uint32_t stream = 0;
  CallId call = kNoCall;
  CallId record = kNoCall;
  uint32_t event = 0;
  Duration run_time{0};
};

class Runtime {
 public:
  Runtime(World& world, Threads& threads);

  // --- the program. A Duration is what the call costs its thread.
  bool accepts(uint32_t stream) const { return !pipeline_.full() && !order_.full(stream); }
  Duration call(const ProgramCall& call);
  // The thread sleeps after the call, until wake(), if blocks() says so.
  Duration copy(const ProgramCopy& copy, uint32_t thread);
  bool blocks(CallId copy) const;
  void sync_stream(uint32_t stream, uint32_t thread);
  void sync_event(uint32_t event, uint32_t thread);
  void sync_all(uint32_t thread);
  bool query(uint32_t stream) const { return order_.done(stream); }
  Duration write(const Range& range);     // the program writes: what guards cost it
  Duration shared(Duration think) const;  // what the program's own work takes beside ours
  void allocated(const Range& range, MemoryKind memory);
  void freed(const Range& range);
  bool reading(const Range& range) const { return pipeline_.reading(range); }

  // --- events
  void worker_done(uint32_t worker);
  void lane_done(uint32_t lane);
  void landed(uint32_t lane);
  void arrived(uint64_t index);
  void opened_inline(uint64_t index);
  void notify(uint32_t stream, uint64_t count);
  void rotation_done(uint32_t lane);
  void watchdog(uint32_t lane);
  void pump();  // after every event: let the core decide

  // --- faults
  void driver_message(uint32_t lane);
  void rotate(uint32_t lane);
  void stall_worker() { stall_next_ = true; }
  void stall_workers(Duration stall) { workers_from_ = world_.now() + stall; }
  void tamper_next(ScriptedFault::Kind how) { tamper_next_ = how; }
  std::optional<Range> some_planned(uint64_t pick) const;
  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }

  void count(Counters& counters) const;
  bool failed() const { return failed_; }

 private:
  struct Carried {
    ProgramCopy copy;
    FlightId flight = kNone;
    uint32_t thread = 0;
    bool small = false;
    bool waits_for_release = false;
    uint64_t content = 0;  // small: what the snapshot holds
    uint32_t arrived = 0;
  };
  struct Outgoing {  // a lane's job: a message or pads
    std::optional<Publish> publish;
    Pad pad{};
    std::vector<CallId> copies{};
    uint64_t content = 0;
    std::optional<ScriptedFault::Kind> tampered{};  // flip, drop, repeat or swap
  };
  struct Lane {
    std::deque<Outgoing> queue;  // front is being handled, or waits for the link
    std::deque<Outgoing> on_link;
    std::optional<Outgoing> missing;  // the bus has lost it, or keeps it back
    bool busy = false;
    uint32_t driver_messages = 0;
    bool rotating = false;
    uint64_t key_bytes = 0;  // sealed under the lane's key
    uint32_t helpers = 0;    // workers that help to copy the message
    Instant idle_since{};
  };
  struct Incoming {
    CallId call = kNoCall;
    uint32_t message = 0;
    bool tampered = false;
  };
  struct Worker {
    bool busy = false;
    std::optional<Seal> seal;
    uint64_t incoming = 0;
    uint64_t content = 0;
    bool from_memory = false;  // and may change under the worker
  };
  struct Guarded {
    Range range;
    GuardKind kind;
    std::vector<Range> dirty;
  };
  struct SlotContent {
    Oracle::Sealed sealed;
    uint64_t bytes = 0;
  };

  void run(const Action& action);
  void run(const OrderAction& action);
  void arm(const Guard& guard);
  void start_seal(const Seal& seal, bool snapshot);
  void start_open(uint64_t incoming);
  void occupy(uint32_t worker, const char* with, uint64_t bytes, Duration work);
  void publish(const Publish& publish);
  Duration publish_time(Lane& lane, const Publish& out, uint64_t bytes);
  void start_lane(uint32_t lane);
  void start_waiting_seals();
  void expose(uint32_t lane, Outgoing& job);
  void reject(std::string_view which);
  void between_messages(uint32_t lane);
  void land(CallId call);
  void done(FlightId flight);
  void issue(const Issue& batch);
  void issue_to_host(CallId call);
  void open(uint64_t incoming);
  Duration check_guards(const Range& host);
  void fail(std::string what);
  Worker* idle_worker(uint32_t& index);
  uint64_t threads_of_ours() const;
  Range part(const Carried& carried, uint32_t message) const;
  uint64_t content_of(const Outgoing& job) const;
  Duration seal_time(uint64_t bytes) const;
  const SealedPath& path(Direction direction) const;
  Carried& carried(CallId call);

  World& world_;
  Threads& threads_;
  std::unique_ptr<GuessSource> source_;
  Pipeline pipeline_;
  Order order_;
  std::vector<Lane> lanes_;
  std::vector<Worker> workers_;
  std::deque<std::pair<Seal, bool>> seals_waiting_;  // all workers open; true: of a snapshot
  std::vector<Carried> carried_;                     // by call
  std::vector<std::vector<CallId>> of_flight_;       // copies of a flight
  std::vector<ProgramCall> calls_;                   // by call
  std::vector<SlotContent> slots_;
  std::vector<Guarded> guarded_;
  MappedRanges unprotectable_;  // managed memory: its pages are the driver's
  std::vector<Incoming> incoming_;
  uint64_t slot_bytes_ = 0;
  uint32_t busy_workers_ = 0;
  Duration guard_debt_{0};  // arming, paid by the next worker
  Instant to_host_free_{};
  Instant opener_free_{};
  Instant submitter_free_{};
  std::optional<Instant> timer_;
  bool in_call_ = false;    // the program's thread is with us: what is submitted now, it submits
  Instant workers_from_{};  // no worker begins before
  bool stall_next_ = false;
  std::optional<ScriptedFault::Kind> tamper_next_;
  bool failed_ = false;
};

}  // namespace sealane::sim
