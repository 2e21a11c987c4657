// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Seals ahead for one copy thread: the door of core/copy/speculation.h, implemented by a Pipeline
// with one lane whose counter is the driver's.
//
//   1. handle_asked     a slot that fits is claimed; its guard was asked just before
//   2. handle_turn      the copy may go
//   3. next_turn        the thread hands this to the driver, in one crossing
//      next_message     the driver seals its next message: has its turn come?
//      answer           may the slot be sent in its place?
//      handle_sent      the message is the driver's now
//      handle_turn_over the crossing is over: counters are compared, the driver's is right
//   4. poll             seal, guard, wipe: for the workers
//
// A slot answers a message if it was sealed under the key the driver uses, at the position the
// driver has reached, from the bytes whose turn it is. Whatever does not fit is wiped before the
// driver seals anything in its place: of two records for one position only one is ever exposed.
//
// Pure; not synchronised.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <variant>

#include "core/copy/speculation.h"
#include "core/pipeline/pipeline.h"

namespace sealane {

class Speculator final : public Speculation {
 public:
  // `source` outlives it. Of the options, lanes and window are set here.
  Speculator(PipelineOptions options, GuessSource& source);

  bool handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) override;
  void handle_turn(CopyId copy, Instant now) override;
  std::optional<WireTurn> next_turn(Instant now) override;
  void handle_over(CopyId copy, bool succeeded, Instant now) override;
  void handle_freed(const Range& host, Instant now) override;
  bool reads(const Range& host) const override;
  bool stopped() const override { return stopped_ || pipeline_.failed(); }

  // --- the crossing under way
  bool crossing() const { return turn_.has_value(); }
  bool all_sent() const { return sent_ >= messages_; }
  CopyId copy_of(FlightId flight) const {
    const auto found = copies_.find(flight);
    return found == copies_.end() ? kNoCopy : found->second;
  }
  // Nothing: a worker is at it still.
  std::optional<Publish> next_message(Instant now);
  // The driver seals it under this key, at this position. The slot to send, or kNone.
  SlotId answer(Epoch epoch, uint64_t position);
  void handle_sent(Instant now);
  // The channel's counter is `next`, under this key.
  void handle_turn_over(Epoch epoch, uint64_t next, bool succeeded, Instant now);

  // --- workers: carry out, then report to pipeline()
  std::optional<Action> poll(Instant now);  // Seal, Void, Guard, Unguard
  Pipeline& pipeline() { return pipeline_; }
  const Pipeline& pipeline() const { return pipeline_; }
  void stop() { stopped_ = true; }

 private:
  void pump(Instant now);
  void drop_published();

  static constexpr LaneId kLane = 0;

  Pipeline pipeline_;
  std::unordered_map<CopyId, FlightId> flights_;
  std::unordered_map<FlightId, CopyId> copies_;
  std::deque<std::variant<Publish, Pad>> turns_;
  std::deque<Action> actions_;
  std::optional<WireTurn> turn_;        // under way
  std::optional<Publish> publication_;  // the message whose turn it is
  uint64_t pads_end_ = 0;               // of pads under way: one past the last position
  uint32_t messages_ = 0;               // of the turn,
  uint32_t sent_ = 0;                   // of those, the driver's
  bool stopped_ = false;
};

}  // namespace sealane
