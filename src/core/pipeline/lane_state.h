// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pipeline knows of its lane to the device: the state of each position from the head on,
// the transfers planned ahead, the requests that have no position yet. A data structure of
// Pipeline; no decisions are made here. Pure; allocates when constructed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
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
};

// A transfer to be sealed ahead: consecutive positions, one guard from the first seal on.
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
};

// What was handed to the lane and has not reached the device.
struct UnderWay {
  uint64_t position = 0;
  FlightId flight = kNone;  // kNone: a pad
  SlotId slot = kNone;
  Range host{};
};

class LaneState {
 public:
  static constexpr size_t kPlannedMax = 256;

  LaneState(KeyLimits limits, size_t flights_max)
      : ledger(limits),
        planned(kPlannedMax),
        displaced(Ledger::kWindow),
        backlog(flights_max),
        ring_(Ledger::kWindow) {}

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
    hold_until.reset();
  }

  Ledger ledger;
  Ring<Planned> planned;      // in position order
  Ring<Displaced> displaced;  // placed before anything of the backlog
  Ring<FlightId> backlog;     // flights with messages that never had a position
  std::optional<UnderWay> under_way;
  Leeway leeway;
  uint64_t seal_from = 0;    // no message waits before it
  uint32_t eligible = 0;     // placed messages of flights that may be issued
  uint32_t extra = 0;        // positions others used since the last request
  uint64_t depth_bytes = 0;  // how much to seal ahead, beyond one transfer
  std::optional<Instant> hold_until;
  uint64_t hold_target = 0;
  std::optional<Instant> waits_since;  // for a worker, with the message whose turn it is
  FlightId early = kNone;              // has positions though it may not go yet
  bool plan_due = false;

 private:
  Message* occupy(Result<Position> minted) {
    if (!minted) return nullptr;
    const uint64_t number = minted->number();
    Message& message = at(number);
    message = {};
    message.position.emplace(std::move(*minted));
    tail_ = std::max(tail_, number + 1);
    return &message;
  }

  std::vector<Message> ring_;
  uint64_t tail_ = 0;
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
  Direction direction = Direction::to_device;
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

}  // namespace sealane
