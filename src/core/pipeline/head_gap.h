// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When the message that may go is not at the head of the lane. What stands at the head is a hole, a
// guess nobody asked for, or a request that still waits for its stream. By cost:
//
//   hold    wait a little: the one before may come. Never longer than the cheapest other way takes,
//           so at worst it doubles the cost; never for a hole.
//   trade   a request that may not go and one that may change places. Unsealed ones lose nothing.
//   pad     send no-op messages up to it. A guess in between is voided.
//   move    void all guesses and seal it again at the head.
//
// The lane never waits for a request that is not ready longer than a hold: it may be waiting for a
// kernel that waits for this very copy.
//
// Event: close(), until the head may go. Action, into the books: Pad. Part of Pipeline; pure. It
// fails by waiting for a new key, when this one carries no more pads.
#pragma once

#include <cstdint>
#include <optional>

#include "core/pipeline/lane_books.h"
#include "core/pipeline/placement.h"
#include "core/pipeline/seal_plan.h"

namespace sealane {

class HeadGap {
 public:
  HeadGap(LaneBooks& lane, SealPlan& plan, Placement& placement)
      : lane_(lane), plan_(plan), placement_(placement) {}

  // One step towards `target`, the first message that may go. False: nothing to do but wait.
  bool close(uint64_t target, Instant now);
  void end_hold() { hold_until_.reset(); }
  std::optional<Instant> deadline() const { return hold_until_; }

 private:
  const Costs& costs() const { return lane_.options.costs; }
  bool hold(uint64_t target, Duration most, Instant now);
  bool pass_request(uint64_t target, Instant now);
  bool pass_guess(uint64_t target, Instant now);
  bool pass_holes(uint64_t target);
  bool better_move(uint64_t gap, Duration move) const;
  Duration move_cost(uint64_t target) const;
  Duration reseal_cost(const Message& message) const;
  void trade(uint64_t first, uint64_t second);
  bool pad(uint64_t end);
  void move_to_head(FlightId flight);

  LaneBooks& lane_;
  SealPlan& plan_;
  Placement& placement_;
  std::optional<Instant> hold_until_;
  uint64_t hold_target_ = 0;
};

}  // namespace sealane
