// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pipeline knows of one lane to the device: the state of each position from the head on,
// the transfers planned ahead, the requests that have no position yet. A data structure of
// Pipeline; no decisions are made here. Pure; allocates when constructed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "core/lane/ledger.h"
#include "core/pipeline/action.h"
#include "core/pipeline/leeway.h"
#include "core/ring.h"

namespace sealane {

enum class MessageState : uint8_t {
  hole,      // nobody has the position
  waiting,   // reserved, to be sealed
  sealing,   // with a worker
  spoiled,   // with a worker, its source has changed: to be sealed again
  ready,     // sealed, private
  orphaned,  // with a worker, nobody wants it: free once the worker is done
};

struct Message {
  MessageState state = MessageState::hole;
  FlightId flight = kNone;  // kNone: ahead
  uint32_t index = 0;       // which message of the transfer
  SlotId slot = kNone;
  SlotId reopen = kNone;  // a slot that holds the plaintext under a position it lost
  Range host;
  std::optional<Position> position;
};

// A transfer sealed ahead: consecutive positions, one guard.
struct Planned {
  Range host;
  uint64_t first = 0;
  uint32_t messages = 0;
  GuardKind guard = GuardKind::none;
};

// A requested message that lost its position.
struct Displaced {
  FlightId flight = kNone;
  uint32_t index = 0;
  SlotId reopen = kNone;
};

class LaneState {
 public:
  static constexpr size_t kPlannedMax = 256;

  LaneState(LaneId lane_id, KeyLimits limits, size_t flights_max)
      : id(lane_id),
        ledger(limits),
        planned(kPlannedMax),
        displaced(Ledger::kWindow),
        backlog(flights_max),
        ring_(Ledger::kWindow) {}

  Message& at(uint64_t position) { return ring_[position % Ledger::kWindow]; }
  const Message& at(uint64_t position) const { return ring_[position % Ledger::kWindow]; }

  // Reserves `position` for `message`, which loses what it was. False if the ledger refuses.
  Message* reserve(uint64_t position, uint64_t bytes) {
    auto minted = ledger.reserve(position, blocks_of(bytes, 0));
    if (!minted) return nullptr;
    return occupy(std::move(*minted));
  }
  Message* reserve_lowest(uint64_t bytes) {
    auto minted = ledger.reserve_next(blocks_of(bytes, 0));
    if (!minted) return nullptr;
    return occupy(std::move(*minted));
  }

  // The position is free again: nothing sealed with it was exposed or is left.
  void give_back(Message& message) {
    ledger.give_back(std::move(*message.position));
    message = {};
  }

  uint64_t head() const { return ledger.head(); }
  // A waiting message appeared at `position`: workers look from there.
  void wake(uint64_t position) {
    if (position < seal_from) seal_from = position;
  }

  LaneId id;
  Ledger ledger;
  Ring<Planned> planned;      // in position order
  Ring<Displaced> displaced;  // to be placed before anything of the backlog
  Ring<FlightId> backlog;     // flights with messages that have no position yet
  Leeway leeway;
  uint64_t tail = 0;         // one past the highest position ever reserved under this key
  uint64_t seal_from = 0;    // no waiting message before it
  uint32_t publishing = 0;   // messages on their way
  uint32_t eligible = 0;     // placed messages of flights that may be issued
  uint32_t extra = 0;        // positions used since the last bulk request, not by bulk
  uint64_t depth_bytes = 0;  // how much to seal ahead
  std::optional<Instant> hold_until;
  uint64_t hold_target = 0;
  FlightId last_published = kNone;
  bool plan_due = false;
  bool synchronised = false;  // since the last request

 private:
  Message* occupy(Position minted) {
    const uint64_t number = minted.number();
    Message& message = at(number);
    message = {};
    message.position.emplace(std::move(minted));
    if (number >= tail) tail = number + 1;
    return &message;
  }

  std::vector<Message> ring_;
};

// A requested copy.
struct Flight {
  Range host;
  Direction direction = Direction::to_device;
  MemoryKind memory = MemoryKind::pageable;
  LaneId lane = 0;
  bool snapshot = false;
  bool ready = false;
  bool released = false;
  bool in_use = false;
  uint32_t messages = 0;
  uint32_t placed = 0;    // messages that ever had a position
  uint32_t unsealed = 0;  // messages whose bytes are still only in the program's memory
  uint32_t landed = 0;    // or, to the host, opened
};

}  // namespace sealane
