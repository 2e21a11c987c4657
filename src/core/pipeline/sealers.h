// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The workers, as the pipeline sees them: which messages they have, and when they may have another.
// Requested messages go first, then guesses by position; neither takes a worker that the lane needs
// to send what was requested. Whether workers that seal requests pay is judged by how long the lane
// waited for them.
//
// Events: begin_next() gives one more, handle_sealed() gets one back, handle_lane_busy,
// handle_sent. Action, into the books: Seal. Part of Pipeline; pure. It fails by giving nothing:
// the lane seals whatever no worker has begun when its turn comes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/pipeline/account.h"
#include "core/pipeline/lane_books.h"
#include "core/pipeline/seal_plan.h"

namespace sealane {

class Sealers {
 public:
  Sealers(LaneBooks& lane, SealPlan& plan)
      : lane_(lane), plan_(plan), sealing_(SlotPool::kSlotsMax) {}

  // Gives the workers one message, if one is due.
  bool begin_next(Instant now);
  void handle_sealed(SlotId slot);
  void handle_unsealed(SlotId slot);

  // The lane has something to do: the workers are its own for a while.
  void handle_lane_busy(Instant now) { quiet_from_ = now + costs().seal(lane_.message_bytes); }
  void handle_time(Instant now) {  // nobody waits for what has passed
    if (quiet_from_ && now >= *quiet_from_) quiet_from_.reset();
  }
  std::optional<Instant> deadline() const { return quiet_from_; }
  // The message whose turn it is has to wait for a worker; and what a worker made is sent.
  void handle_lane_waits(Instant now) {
    if (!waits_since_) waits_since_ = now;
  }
  void handle_sent(const Message& message, Instant now);

 private:
  const Costs& costs() const { return lane_.options.costs; }
  bool quiet(Instant now) const;
  bool begin_one(bool ahead, Instant now);
  bool may_begin(const Message& message, Instant now) const;
  bool begin(uint64_t position);
  // What the worker had. Nothing: nobody wants it any more, or it has to be sealed again.
  Message* take(SlotId slot);

  LaneBooks& lane_;
  SealPlan& plan_;
  Ring<SlotId> sealing_;
  Account sharing_;  // what workers bring that seal what was requested, against the lane alone
  std::optional<Instant> quiet_from_;   // until then the lane needs the workers for itself
  std::optional<Instant> waits_since_;  // for a worker, with the message whose turn it is
};

}  // namespace sealane
