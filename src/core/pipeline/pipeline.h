// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what to seal ahead, what to send when a copy is requested, and what to give up.
// Use: handle_*() as things happen, then poll() until it returns nothing; poll again when
// deadline() has passed. The order of calls is the order of events; `now` never goes back.
//
// Positions are reserved in order, sealed in parallel, published in order. What a program sees
// does not depend on any guess: a wrong one costs time. Whatever the workers do, a lane makes
// progress: it seals the message whose turn it is itself if no worker has begun.
//
// Fails by one sticky state, failed(): a record that did not verify, or counters that disagree.
// From then on poll() returns nothing and the driver must fail every later call.
//
// Pure: no threads, no clock, no I/O; not synchronised. Allocates only when constructed:
// see memory_bytes().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "core/pipeline/account.h"
#include "core/pipeline/action.h"
#include "core/pipeline/changing.h"
#include "core/pipeline/costs.h"
#include "core/pipeline/lane_state.h"
#include "core/pipeline/slot_pool.h"
#include "core/policy.h"
#include "core/predict/mapped_ranges.h"
#include "core/predict/predictor.h"
#include "core/ring.h"
#include "core/rules.h"

namespace sealane {

struct PipelineOptions {
  Policy policy;
  Costs costs;
  SafetyRules rules;
  KeyLimits key_limits;
  uint64_t slot_bytes_max = 256_MiB;  // the budget
  LaneId lanes = 2;
  uint32_t publish_window = 2;  // messages of a lane on their way at a time
  bool page_guards = true;      // false: digests serve everywhere; else see handle_guarded()
};

struct CopyRequest {
  Direction direction = Direction::to_device;
  LaneId lane = 0;
  Range host;  // a snapshot has no address, only a size
  MemoryKind memory = MemoryKind::pageable;
  bool snapshot = false;  // the driver keeps the bytes in private memory
  bool leaves = false;    // the source may change when the call returns, of which there is a copy
  bool ready = false;     // may be issued at once; else handle_ready() says when
};

class Pipeline {
 public:
  static constexpr size_t kFlightsMax = 1024;

  // `source` may be nullptr if the policy does not speculate; it must outlive the pipeline.
  Pipeline(const PipelineOptions& options, GuessSource* source);

  // --- events: the program
  // Not while full(). Before it, report with handle_written() what guard_of(host) finds broken.
  FlightId handle_copy(const CopyRequest& copy, Instant now);
  void handle_ready(FlightId flight, Instant now);  // all before it in its stream is done
  void handle_written(const Range& range, Instant now);
  void handle_allocated(const Range& range);           // may be sealed before it was ever copied
  void handle_freed(const Range& range, Instant now);  // the memory may go when !reading(range)
  void handle_synchronise(Instant now);  // the program waits: nothing earlier will be requested
  // What the guard of this memory turned out to be. Pages that cannot be protected are digested in
  // every request, which costs what it costs: from now on the core reckons with it, until they are
  // freed.
  void handle_guarded(const Range& range, GuardKind kind);

  // --- events: workers, lanes, the device
  void handle_sealed(SlotId slot, Instant now);
  // It could not be: no memory, or the source is gone. The lane seals it when its turn comes.
  void handle_unsealed(SlotId slot, Instant now);
  // Others need memory too: there is only so much of the budget, until told otherwise.
  void handle_room(uint64_t bytes);
  void handle_published(LaneId lane, uint64_t position, Instant now);
  void handle_arrived(FlightId flight, uint32_t message, Instant now);  // from the device
  void handle_opened(FlightId flight, uint32_t message, bool verified, Instant now);
  void handle_consumed(LaneId lane, uint64_t head, Instant now);  // others used the lane up to head
  void handle_paused(LaneId lane);                // publish nothing until the key is changed
  void handle_rotated(LaneId lane, Instant now);  // only while nothing is being published there
  // From now on copies are cut into messages of this size. What was requested keeps its own; what
  // is planned is planned anew.
  void handle_message_bytes(uint64_t bytes);
  void handle_device_error();

  std::optional<Action> poll(Instant now);
  std::optional<Instant> deadline() const;

  // --- what the driver may ask
  bool failed() const { return failed_; }
  bool full() const { return flights_free_.empty(); }
  // How the ranges sealed ahead from `host` are guarded: what must be checked before a request.
  GuardKind guard_of(const Range& host) const;
  // A copy to the host is going to write here: what is there now must not be taken for a snapshot.
  bool inbound(const Range& range) const;
  bool reading(const Range& range) const;       // a worker or a lane may be reading it now
  bool sealing_from(const Range& range) const;  // a worker may be
  // The message whose turn it is may go, but a worker is at it still.
  bool waits_for_worker(LaneId lane) const;
  // How many messages of the same copy follow the one published last without a gap: they can travel
  // in one crossing with it.
  uint32_t following(LaneId lane) const;

  struct Stats {
    uint64_t requests = 0;        // bulk copies to the device
    uint64_t hits = 0;            // of those, foreseen and unchanged: planned, and the guard held
    uint64_t guesses = 0;         // transfers that were planned
    uint64_t messages = 0;        // of bulk copies to the device
    uint64_t messages_ready = 0;  // of those, sealed before they were asked for
    uint64_t sealed_ahead = 0;    // messages
    uint64_t voided = 0;          // slots wiped without being published,
    std::array<uint64_t, kVoidReasons> voided_for{};  // by reason
    uint64_t padded = 0;                              // no-op messages
    uint64_t relinquished = 0;                        // planned transfers given up
    uint64_t held = 0;
    uint64_t resealed = 0;       // requested messages that lost their position
    uint64_t inline_sealed = 0;  // messages the lane sealed itself
  };
  const Stats& stats() const { return stats_; }
  const PipelineOptions& options() const { return options_; }
  const SlotPool& slots() const { return slots_; }
  const LaneState& lane(LaneId id) const { return lanes_[id]; }
  const Range& host_of(FlightId flight) const { return flights_[flight].host; }
  Direction direction_of(FlightId flight) const { return flights_[flight].direction; }
  uint64_t message_bytes() const { return message_bytes_; }
  uint64_t message_bytes_of(FlightId flight) const { return flights_[flight].message_bytes; }
  size_t memory_bytes() const;

 private:
  // Request (pipeline.cc).
  FlightId take_flight(const CopyRequest& copy);
  void take_back(FlightId id, Instant now);
  bool claim(FlightId id);
  void credit_hit(const Planned& planned, uint32_t ready, bool intact);
  void make_room(LaneState& lane);
  bool may_place(const LaneState& lane, FlightId id) const;
  uint64_t placeable(const LaneState& lane) const;
  void place(LaneState& lane);
  Message* place_one(LaneState& lane, FlightId flight, uint32_t index);
  void release_if_sealed(FlightId id);

  // Publish (pipeline.cc).
  bool advance(LaneState& lane, Instant now);
  void publish(LaneState& lane, Message& message);
  void judge_worker(LaneState& lane, const Message& message, Instant now);
  bool dispatch(Instant now);
  bool sending() const;
  bool quiet(Instant now);
  void stir(Instant now);
  bool dispatch_from(LaneState& lane, bool ahead, Instant now);
  Instant early_from(const CopyRequest& copy, Instant now) const;
  bool seal(LaneState& lane, uint64_t position);
  Message* take_from_worker(SlotId slot);
  bool awaits_open(const Message& message, bool issued_only) const;
  void finish(FlightId id);
  void fail();

  // Somebody else's turn comes first (pipeline_gaps.cc).
  bool resolve(LaneState& lane, uint64_t target, Instant now);
  bool better_move(uint64_t gap, Duration move) const;
  bool hold(LaneState& lane, uint64_t target, Duration most, Instant now);
  bool pass_request(LaneState& lane, uint64_t target, Instant now);
  bool pass_guess(LaneState& lane, uint64_t target, Instant now);
  bool tradable(const Message& message) const;
  Duration reseal_cost(const Message& message) const;
  void trade(LaneState& lane, uint64_t first, uint64_t second);
  bool may_move(const LaneState& lane, uint64_t target) const;
  Duration move_cost(const LaneState& lane, uint64_t target) const;
  bool pad(LaneState& lane, uint64_t end);
  void move_to_head(LaneState& lane, FlightId flight);
  void displace(LaneState& lane, Message& message, VoidReason why);
  void displace_all(LaneState& lane, uint64_t first, uint64_t end);

  // Plan and give up (pipeline_plan.cc).
  void plan(LaneState& lane, Instant now);
  bool extend(LaneState& lane, const Range& host, size_t index, uint64_t first);
  bool sealable(const Range& host) const;
  uint64_t requested_end(LaneState& lane) const;
  void guard_planned(LaneState& lane, uint64_t position);
  bool time_to_guard(const LaneState& lane, uint64_t position) const;
  static size_t find_planned(const LaneState& lane, uint64_t position);
  bool worth_sealing(const Range& host) const;
  uint32_t leeway(const LaneState& lane) const;
  uint64_t depth_max() const;
  GuardKind guard_kind(const Range& host) const;
  void relinquish(LaneState& lane, size_t first_planned, VoidReason why);
  void void_planned(LaneState& lane, size_t index, VoidReason why);
  void void_slot(SlotId slot, VoidReason why);
  void break_guard(LaneState& lane, const Planned& planned, const Range& written);

  bool is_bulk(const Flight& flight) const {
    return !flight.snapshot && flight.host.bytes >= options_.policy.bulk_bytes_min;
  }
  LaneState& bulk_lane() { return lanes_.back(); }

  PipelineOptions options_;
  GuessSource* source_;
  std::vector<LaneState> lanes_;
  SlotPool slots_;
  std::vector<Flight> flights_;
  Ring<FlightId> flights_free_;
  Ring<FlightId> inbound_;             // copies to the host that are not done
  Ring<SlotId> sealing_;               // with workers
  uint32_t opening_ = 0;               // messages from the device with workers
  std::optional<Instant> quiet_from_;  // until then the lanes need the workers for themselves
  Ring<Action> actions_;
  uint64_t message_bytes_ = kMessageBytes;
  const uint32_t sealers_;
  const uint32_t helpers_;
  const bool slots_pay_;
  Account account_;
  Account sharing_;  // what workers bring that seal what was requested, against the lane alone
  ChangingRanges changing_;
  MappedRanges digested_;  // memory whose pages could not be protected
  Stats stats_;
  bool failed_ = false;
};

}  // namespace sealane
