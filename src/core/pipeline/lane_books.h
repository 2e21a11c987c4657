// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the parts of a Pipeline share: the state of each position of its lane from the head on, the
// copies that were requested, the slots, what is to be done next, what was counted. Each part
// decides by these books and enters what it decided; nothing is decided here.
//
// Fails by one sticky state, `failed`: counters that disagree. Pure; allocates when constructed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "core/lane/ledger.h"
#include "core/pipeline/action.h"
#include "core/pipeline/costs.h"
#include "core/pipeline/slot_pool.h"
#include "core/policy.h"
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

struct PipelineStats {
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

enum class MessageState : uint8_t {
  hole,      // nobody has the position
  waiting,   // reserved, to be sealed
  sealing,   // with a worker
  spoiled,   // with a worker, but the source has changed
  broken,    // reserved, the source has changed: not sealed again before it is asked for
  ready,     // sealed, private
  orphaned,  // with a worker, nobody wants it: free once the worker is done
};

struct Message {
  MessageState state = MessageState::hole;
  FlightId flight = kNone;  // kNone: ahead
  uint32_t index = 0;       // which message of the transfer
  SlotId slot = kNone;
  bool by_lane = false;  // no worker could
  Range host;
  std::optional<Position> position;

  bool with_worker() const {
    return state == MessageState::sealing || state == MessageState::spoiled;
  }
  // No worker has it: it can be sealed again, for another position.
  bool idle() const { return state == MessageState::waiting || state == MessageState::ready; }
};

// What was handed to the lane and has not reached the device.
struct UnderWay {
  uint64_t position = 0;
  FlightId flight = kNone;  // kNone: a pad
  SlotId slot = kNone;
  Range host{};
};

// A copy of `bytes` is this many messages; message i carries this part of it. The size is the
// driver's: this one until it shows another.
constexpr uint64_t kMessageBytes = 1_MiB;
constexpr uint32_t message_count(uint64_t bytes, uint64_t message_bytes = kMessageBytes) {
  return bytes == 0 ? 1 : static_cast<uint32_t>((bytes - 1) / message_bytes + 1);
}
inline Range message_range(const Range& host, uint32_t index,
                           uint64_t message_bytes = kMessageBytes) {
  const uint64_t offset = index * message_bytes;
  return {host.address + offset, std::min(message_bytes, host.bytes - offset)};
}

// A requested copy.
struct Flight {
  Range host;
  bool ready = false;
  bool bypassed = false;  // others went first: not sealed again before it is ready
  bool in_use = false;
  bool leaves = false;
  Instant early_from{};  // before that no worker seals it unless it is ready
  uint64_t message_bytes = kMessageBytes;
  uint32_t messages = 0;
  uint32_t placed = 0;   // messages that ever had a position
  uint32_t in_ring = 0;  // messages that have a position and are not published
  uint32_t sent = 0;
};

class LaneBooks {
 public:
  static constexpr size_t kFlightsMax = 1024;

  explicit LaneBooks(const PipelineOptions& with)
      : options(with),
        ledger(with.key_limits),
        slots(with.slot_bytes_max, with.rules.budget),
        actions(4 * Ledger::kWindow),
        inbound(kFlightsMax),
        ring_(Ledger::kWindow),
        flights_(kFlightsMax),
        flights_free_(kFlightsMax) {
    for (FlightId id = 0; id < kFlightsMax; ++id) flights_free_.push(id);
  }

  // --- positions
  Message& at(uint64_t position) { return ring_[position % Ledger::kWindow]; }
  const Message& at(uint64_t position) const { return ring_[position % Ledger::kWindow]; }
  uint64_t head() const { return ledger.head(); }

  // A fresh message at `position`, or at the lowest free one. nullptr if the ledger refuses.
  Message* reserve(uint64_t position, uint64_t bytes) {
    return occupy(ledger.reserve(position, blocks_of(bytes, 0)));
  }
  Message* reserve_lowest(uint64_t bytes) {
    return occupy(ledger.reserve_next(blocks_of(bytes, 0)));
  }
  // The position is free again: nothing sealed with it was exposed, nothing is left of it.
  void give_back(Message& message) {
    ledger.give_back(std::move(*message.position));
    message = {};
  }
  // Nobody wants what was planned here: its position is free as soon as no worker has it.
  void abandon(Message& message, VoidReason why) {
    if (message.with_worker()) {
      slots.orphan(message.slot, why);
      message.state = MessageState::orphaned;
      return;
    }
    if (message.state == MessageState::ready) void_slot(message.slot, why);
    give_back(message);
  }
  // From here on the position is exposed: the ledger knows before the driver does.
  bool expose(Message& message) {
    failed = failed || !ledger.publish(std::move(*message.position));
    return !failed;
  }
  // Workers look for waiting messages from here.
  void wake(uint64_t position) { seal_from = std::min(seal_from, position); }
  // One past the highest position somebody has.
  uint64_t frontier() {
    while (tail_ > head() && at(tail_ - 1).state == MessageState::hole) --tail_;
    return tail_ = std::max(tail_, head());
  }
  // A new key: positions start again. The caller has emptied the ring.
  void rotate() {
    ledger.rotate();
    tail_ = seal_from = 0;
  }

  // --- copies that were requested
  bool full() const { return flights_free_.empty(); }
  FlightId open_flight(const Flight& flight) {
    SEALANE_CHECK(!full(), "more copies than the pipeline can carry");
    const FlightId id = flights_free_.front();
    flights_free_.pop();
    flights_[id] = flight;
    flights_[id].in_use = true;
    return id;
  }
  void close_flight(FlightId id) {
    flights_[id].in_use = false;
    flights_free_.push(id);
  }
  Flight& flight(FlightId id) { return flights_[id]; }
  const Flight& flight(FlightId id) const { return flights_[id]; }
  bool may_go(const Message& message) const {
    return message.flight != kNone && flights_[message.flight].ready;
  }
  bool sending() const { return eligible > 0 || under_way; }
  // A copy to the host is going to write here: what is there now must not be sealed.
  bool comes_in(const Range& range) const {
    for (size_t i = 0; i < inbound.size(); ++i) {
      if (flights_[inbound[i]].host.overlaps(range)) return true;
    }
    return false;
  }

  // Wiped before its position can be sealed again: the action comes before any later one.
  void void_slot(SlotId slot, VoidReason why) {
    ++stats.voided;
    ++stats.voided_for[static_cast<size_t>(why)];
    slots.give(slot);
    actions.push(Void{slot});
  }

  const PipelineOptions options;
  Ledger ledger;
  SlotPool slots;
  Ring<Action> actions;    // to be polled
  Ring<FlightId> inbound;  // copies to the host that are not done
  std::optional<UnderWay> under_way;
  uint64_t message_bytes = kMessageBytes;
  uint64_t seal_from = 0;  // no message waits before it
  uint32_t eligible = 0;   // placed messages of flights that may be issued
  PipelineStats stats;
  bool worth_guessing = true;  // somebody gains by what is sealed ahead
  bool failed = false;

 private:
  Message* occupy(Result<Position> minted) {
    if (!minted) return nullptr;
    const uint64_t number = minted->number();
    Message& message = at(number);
    message = {};
    message.position.emplace(std::move(*minted));
    message.state = MessageState::waiting;
    tail_ = std::max(tail_, number + 1);
    return &message;
  }

  std::vector<Message> ring_;
  uint64_t tail_ = 0;
  std::vector<Flight> flights_;
  Ring<FlightId> flights_free_;
};

}  // namespace sealane
