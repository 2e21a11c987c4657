// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what to seal ahead, what to send when a copy is requested, and what to give up, for one
// lane to the device. Use: handle_*() as things happen, then poll() until it returns nothing; poll
// again when deadline() has passed. The order of calls is the order of events; `now` never goes
// back.
//
// Positions are reserved in order, sealed in parallel, published in order. What a program sees
// does not depend on any guess: a wrong one costs time. Whatever the workers do, the lane makes
// progress: it seals the message whose turn it is itself if no worker has begun.
//
// Fails by one sticky state, failed(): counters that disagree. From then on poll() returns nothing.
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
  bool page_guards = true;            // false: digests serve everywhere; else see handle_guarded()
};

struct CopyRequest {
  Direction direction = Direction::to_device;
  Range host;
  bool leaves = false;  // the source may change when the call returns, of which there is a copy
};

class Pipeline {
 public:
  static constexpr size_t kFlightsMax = 1024;

  Pipeline(const PipelineOptions& options, GuessSource& source);  // which outlives it

  // --- events: the program
  // Not while full(). Before it, report with handle_written() what guard_of(host) finds broken.
  FlightId handle_copy(const CopyRequest& copy, Instant now);
  void handle_ready(FlightId flight, Instant now);  // to the device: all before it is done
  void handle_arrived(FlightId flight);             // to the host: it is there, and verified
  void handle_written(const Range& range, Instant now);
  void handle_allocated(const Range& range);  // may be sealed before it was ever copied
  void handle_freed(const Range& range, Instant now);
  // What the guard of this memory turned out to be. Pages that cannot be protected are digested in
  // every request, which costs what it costs: from now on the core reckons with it, until they are
  // freed.
  void handle_guarded(const Range& range, GuardKind kind);

  // --- events: workers, the lane
  void handle_sealed(SlotId slot, Instant now);
  // It could not be: no memory, or the source is gone. The lane seals it when its turn comes.
  void handle_unsealed(SlotId slot, Instant now);
  // Others need memory too: there is only so much of the budget, until told otherwise.
  void handle_room(uint64_t bytes);
  void handle_published(uint64_t position, Instant now);
  void handle_consumed(uint64_t head, Instant now);  // others used the lane up to head
  void handle_rotated(Instant now);                  // only while nothing is being published
  // From now on copies are cut into messages of this size. What was requested keeps its own; what
  // is planned is planned anew.
  void handle_message_bytes(uint64_t bytes);

  std::optional<Action> poll(Instant now);
  std::optional<Instant> deadline() const;

  // --- what the driver may ask
  bool failed() const { return failed_; }
  bool full() const { return flights_free_.empty(); }
  // How the ranges sealed ahead from `host` are guarded: what must be checked before a request.
  GuardKind guard_of(const Range& host) const;
  // The message whose turn it is may go, but a worker is at it still.
  bool waits_for_worker() const;
  // How many messages of the same copy follow the one published last without a gap: they can travel
  // in one crossing with it.
  uint32_t following() const;

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
    uint64_t resealed = 0;  // requested messages that lost their position
  };
  const Stats& stats() const { return stats_; }
  const PipelineOptions& options() const { return options_; }
  const SlotPool& slots() const { return slots_; }
  const LaneState& lane() const { return lane_; }
  const Range& host_of(FlightId flight) const { return flights_[flight].host; }
  uint64_t message_bytes() const { return message_bytes_; }
  uint64_t message_bytes_of(FlightId flight) const { return flights_[flight].message_bytes; }
  size_t memory_bytes() const;

 private:
  // Request (pipeline_request.cc).
  FlightId take_flight(const CopyRequest& copy, Instant now);
  void take_back(FlightId id);
  bool claim(FlightId id);
  void credit_hit(const Planned& planned, uint32_t ready, bool intact);
  void make_room();
  bool may_place(FlightId id) const;
  uint64_t placeable() const;
  void place();
  bool place_one(FlightId flight, uint32_t index);

  // Publish (pipeline.cc).
  bool advance(Instant now);
  void publish(Message& message);
  void judge_worker(const Message& message, Instant now);
  bool dispatch(Instant now);
  bool sending() const { return lane_.eligible > 0 || lane_.under_way; }
  bool quiet(Instant now) const;
  void stir(Instant now);
  bool dispatch_from(bool ahead, Instant now);
  bool seal(uint64_t position);
  Message* take_from_worker(SlotId slot);
  bool inbound(const Range& range) const;
  void finish(FlightId id);
  void fail() { failed_ = true; }

  // Somebody else's turn comes first (pipeline_gaps.cc).
  bool resolve(uint64_t target, Instant now);
  bool better_move(uint64_t gap, Duration move) const;
  bool hold(uint64_t target, Duration most, Instant now);
  bool pass_request(uint64_t target, Instant now);
  bool pass_guess(uint64_t target, Instant now);
  Duration reseal_cost(const Message& message) const;
  void trade(uint64_t first, uint64_t second);
  Duration move_cost(uint64_t target) const;
  bool pad(uint64_t end);
  void move_to_head(FlightId flight);
  void displace(Message& message, VoidReason why);
  void empty(uint64_t first, uint64_t end, VoidReason why);

  // Plan and give up (pipeline_plan.cc).
  void plan(Instant now);
  bool extend(const Range& host, size_t index, uint64_t first);
  bool sealable(const Range& host) const;
  uint64_t requested_end();
  void guard_planned(uint64_t position);
  bool time_to_guard(uint64_t position) const;
  size_t find_planned(uint64_t position) const;
  bool worth_sealing(const Range& host) const;
  uint32_t leeway() const;
  uint64_t depth_max() const;
  GuardKind guard_kind(const Range& host) const;
  void relinquish(size_t first_planned, VoidReason why);
  void void_planned(size_t index, VoidReason why);
  void void_slot(SlotId slot, VoidReason why);
  void break_guard(const Planned& planned, const Range& written);

  PipelineOptions options_;
  GuessSource& source_;
  LaneState lane_;
  SlotPool slots_;
  std::vector<Flight> flights_;
  Ring<FlightId> flights_free_;
  Ring<FlightId> inbound_;             // copies to the host that are not done
  Ring<SlotId> sealing_;               // with workers
  std::optional<Instant> quiet_from_;  // until then the lane needs the workers for itself
  Ring<Action> actions_;
  uint64_t message_bytes_ = kMessageBytes;
  const bool slots_pay_;
  Account account_;
  Account sharing_;  // what workers bring that seal what was requested, against the lane alone
  ChangingRanges changing_;
  MappedRanges digested_;  // memory whose pages could not be protected
  Stats stats_;
  bool failed_ = false;
};

}  // namespace sealane
