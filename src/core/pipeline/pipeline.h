// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what to seal ahead, what to send when a copy is requested, and what to give up, for one
// lane to the device. Use: handle_*() as things happen, then poll() until it returns nothing; poll
// again when deadline() has passed. The order of calls is the order of events; `now` never goes
// back.
//
//   1. handle_copy    serial    claim what was sealed ahead (seal_plan.h), or get the next
//                               positions (placement.h)
//   2. poll           serial    learn from requests, ask what comes next, reserve positions for it
//                               (seal_plan.h)
//   3.                serial    give messages to workers, requested ones first (sealers.h)
//      handle_sealed  parallel  any number of workers seal, in any order
//   4. handle_ready   serial    nothing before it in its stream is left
//   5. poll           serial    the message whose turn it is goes out; if somebody else's turn
//                               comes first: hold, pad, or move to the front (head_gap.h)
//   6. handle_published         the device has it; the last message ends the flight
//
// A copy to the host is observed (1), carried by others (handle_arrived), and its range becomes a
// candidate for 2. What the parts know they have in common is in lane_books.h.
//
// Positions are reserved in order, sealed in parallel, published in order. What a program sees
// does not depend on any guess: a wrong one costs time. Whatever the workers do, the lane makes
// progress: it seals the message whose turn it is itself if no worker has begun.
//
// Fails by one sticky state, failed(): counters that disagree. From then on poll() returns nothing.
//
// Pure: no threads, no clock, no I/O; not synchronised. Allocates only when constructed.
#pragma once

#include <cstdint>
#include <optional>

#include "core/pipeline/head_gap.h"
#include "core/pipeline/lane_books.h"
#include "core/pipeline/placement.h"
#include "core/pipeline/seal_plan.h"
#include "core/pipeline/sealers.h"

namespace sealane {

struct CopyRequest {
  Direction direction = Direction::to_device;
  Range host;
  bool leaves = false;  // the source may change when the call returns, of which there is a copy
};

class Pipeline {
 public:
  using Stats = PipelineStats;
  static constexpr size_t kFlightsMax = LaneBooks::kFlightsMax;

  Pipeline(const PipelineOptions& options, GuessSource& source);  // which outlives it
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // --- events: the program
  // Not while full(). Before it, report with handle_written() what guard_of(host) finds broken.
  FlightId handle_copy(const CopyRequest& copy, Instant now);
  void handle_ready(FlightId flight, Instant now);  // to the device: all before it is done
  void handle_arrived(FlightId flight);             // to the host: it is there, and verified
  void handle_written(const Range& range) { plan_.handle_written(range); }
  void handle_allocated(const Range& range);  // may be guessed uncopied
  void handle_freed(const Range& range);
  // What the guard of this memory turned out to be. Pages that cannot be protected are digested in
  // every request, which costs what it costs: from now on the core reckons with it, until they are
  // freed.
  void handle_guarded(const Range& range, GuardKind kind) { plan_.handle_guarded(range, kind); }

  // --- events: workers, the lane
  void handle_sealed(SlotId slot) { sealers_.handle_sealed(slot); }
  // It could not be: no memory, or the source is gone. The lane seals it when its turn comes.
  void handle_unsealed(SlotId slot) { sealers_.handle_unsealed(slot); }
  // Others need memory too: there is only so much of the budget, until told otherwise.
  void handle_room(uint64_t bytes);
  // Nobody gains by what is sealed ahead: nothing more is, until told otherwise.
  void handle_worth(bool worth) { lane_.worth_guessing = worth; }
  void handle_published(uint64_t position, Instant now);
  void handle_consumed(uint64_t head);  // others used the lane up to head
  void handle_rotated();                // only while nothing is being published
  // From now on copies are cut into messages of this size. What was requested keeps its own; what
  // is planned is planned anew.
  void handle_message_bytes(uint64_t bytes);

  std::optional<Action> poll(Instant now);
  std::optional<Instant> deadline() const;

  // --- what the driver may ask
  bool failed() const { return lane_.failed; }
  bool full() const { return lane_.full(); }
  // How the ranges sealed ahead from `host` are guarded: what must be checked before a request.
  GuardKind guard_of(const Range& host) const { return plan_.guard_of(host); }
  // The message whose turn it is may go, but a worker is at it still.
  bool waits_for_worker() const;
  // How many messages of the same copy follow the one published last without a gap: they can travel
  // in one crossing with it.
  uint32_t following() const;

  const Stats& stats() const { return lane_.stats; }
  const PipelineOptions& options() const { return lane_.options; }
  const SlotPool& slots() const { return lane_.slots; }
  const LaneBooks& lane() const { return lane_; }
  const Ring<Planned>& planned() const { return plan_.planned(); }
  const Range& host_of(FlightId flight) const { return lane_.flight(flight).host; }
  uint64_t message_bytes() const { return lane_.message_bytes; }
  uint64_t message_bytes_of(FlightId flight) const { return lane_.flight(flight).message_bytes; }

 private:
  static constexpr size_t kUnlearntMax = 64;

  void learn();
  void place();
  bool advance(Instant now);
  void publish(Message& message);

  GuessSource& source_;
  LaneBooks lane_;
  SealPlan plan_;
  Placement placement_;
  Sealers sealers_;
  HeadGap gap_;
  Ring<Transfer> unlearnt_;  // requests that the source of guesses has not seen
  bool plan_due_ = false;
};

}  // namespace sealane
