// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When the message that may go is not at the head of the lane. Between head and it are holes,
// guesses nobody asked for, or requests that still wait for their stream. Three ways, by cost:
//
//   hold    wait a little: the one before may come. Never longer than the cheaper of the others
//           takes, so at worst it doubles the cost; never for holes alone.
//   pad     send no-op messages up to it. Guesses in between are voided, requests are placed anew.
//   move    void all guesses and seal it again at the head.
//
// The lane never waits for a request that is not ready longer than a hold: it may be waiting for a
// kernel that waits for this very copy.

#include <limits>
#include <utility>

#include "core/pipeline/pipeline.h"

namespace sealane {
namespace {

// The paper's rules, for policies that do not decide by cost.
constexpr Duration kPaperHold{500'000};
constexpr uint64_t kPaperPads = 8;

}  // namespace

bool Pipeline::resolve(LaneState& lane, uint64_t target, Instant now) {
  const uint64_t gap = target - lane.head();
  const Duration pad = options_.costs.pad * static_cast<int64_t>(gap);
  const bool can_move = may_move(lane, target);
  const Duration move = can_move ? move_cost(lane, target) : Duration::max();

  bool guesses = false;
  bool requests = false;
  for (uint64_t position = lane.head(); position < target; ++position) {
    const Message& message = lane.at(position);
    if (message.flight != kNone) requests = true;
    if (message.flight == kNone && message.state != MessageState::hole) guesses = true;
  }
  if (requests || (guesses && !lane.synchronised)) {
    if (!lane.hold_until || lane.hold_target != target) {
      lane.hold_until = now + (options_.policy.by_cost ? std::min(pad, move) : kPaperHold);
      lane.hold_target = target;
      ++stats_.held;
      actions_.push(Hold{lane.id, lane.at(target).flight, *lane.hold_until});
      return true;
    }
    if (now < *lane.hold_until) return false;
  }
  lane.hold_until.reset();
  const bool move_is_better = options_.policy.by_cost ? move < pad : gap > kPaperPads;
  if (can_move && move_is_better) {
    move_to_head(lane, lane.at(target).flight);
    return true;
  }
  return step_over(lane, target);
}

// Only what can be sealed again from the program's memory, and only past holes and guesses.
bool Pipeline::may_move(const LaneState& lane, uint64_t target) const {
  const Flight& flight = flights_[lane.at(target).flight];
  if (flight.snapshot || (flight.memory != MemoryKind::pinned && flight.released)) return false;
  for (uint64_t position = lane.head(); position < target; ++position) {
    const Message& message = lane.at(position);
    if (message.flight != kNone || message.state == MessageState::orphaned) return false;
  }
  return lane.at(target).state == MessageState::ready ||
         lane.at(target).state == MessageState::waiting;
}

// What is lost by sealing the flight anew, and the guesses with it.
Duration Pipeline::move_cost(const LaneState& lane, uint64_t target) const {
  const Costs& costs = options_.costs;
  const Flight& flight = flights_[lane.at(target).flight];
  const uint64_t bytes = flight.host.bytes;
  Duration lost{0};
  if (lane.at(target).state == MessageState::ready) {
    lost += costs.live(bytes, flight.messages) - costs.ready(bytes, flight.messages);
  }
  for (size_t i = 0; i < lane.planned.size(); ++i) {
    if (lane.planned[i].first > target)
      lost += costs.seal(lane.planned[i].host.bytes) / costs.workers;
  }
  return lost;
}

bool Pipeline::step_over(LaneState& lane, uint64_t target) {
  const uint64_t first = lane.head();
  if (lane.ledger.blocks_left() < target - first) return false;  // wait for the rotation
  while (!lane.planned.empty() && lane.planned.front().first < target) void_planned(lane, 0);
  displace_all(lane, first, target);
  for (uint64_t position = first; position < target; ++position) {
    Message& message = lane.at(position);
    // Positions a worker is still sealing for nobody are sent as pads too: that record stays
    // private.
    const bool minted = message.position || lane.reserve(position, 0) != nullptr;
    if (!minted || !lane.ledger.publish(std::move(*message.position))) {
      fail();
      return false;
    }
    message = {};
  }
  const uint64_t count = target - first;
  stats_.padded += count;
  account_.spend(options_.costs.pad * static_cast<int64_t>(count));
  lane.under_way.push({.position = target - 1});
  lane.last_flight = kNone;
  actions_.push(Pad{lane.id, first, count});
  make_room(lane);
  place(lane);
  return true;
}

void Pipeline::move_to_head(LaneState& lane, FlightId id) {
  relinquish(lane, 0);
  const uint64_t end = lane.frontier();
  for (uint64_t position = lane.head(); position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != id) continue;
    const bool with_worker =
        message.state == MessageState::sealing || message.state == MessageState::spoiled;
    if (with_worker) continue;  // it keeps its place
    displace(lane, message);
    lane.give_back(message);
  }
  place(lane);
}

void Pipeline::displace_all(LaneState& lane, uint64_t first, uint64_t end) {
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != kNone) displace(lane, message);
  }
}

// A requested message loses its position; the caller decides what becomes of the position.
void Pipeline::displace(LaneState& lane, Message& message) {
  Flight& flight = flights_[message.flight];
  Displaced lost{.flight = message.flight, .index = message.index, .reopen = message.reopen};
  switch (message.state) {
    case MessageState::sealing:
    case MessageState::spoiled:
      slots_[message.slot].orphan = true;
      break;
    case MessageState::ready:
      if (!flight.snapshot && flight.memory != MemoryKind::pinned && flight.released) {
        lost.reopen = message.slot;  // the only place the bytes still are
      } else {
        void_slot(message.slot);
        ++flight.unsealed;
      }
      break;
    default:
      break;
  }
  ++stats_.resealed;
  --flight.in_ring;
  if (flight.ready) --lane.eligible;
  lane.displaced.push(lost);
  message.state = MessageState::waiting;
  message.flight = kNone;
  message.slot = message.reopen = kNone;
}

// --- the lane moved without us

void Pipeline::handle_consumed(LaneId id, uint64_t head, Instant) {
  LaneState& lane = lanes_[id];
  const uint64_t first = lane.head();
  if (head <= first) {
    if (head < first) fail();  // the counters disagree
    return;
  }
  lane.extra += static_cast<uint32_t>(head - first);
  while (!lane.planned.empty() && lane.planned.front().first < head) void_planned(lane, 0);
  const uint64_t end = std::min(head, lane.frontier());
  displace_all(lane, first, end);
  for (uint64_t position = first; position < end; ++position) lane.at(position) = {};
  if (!lane.ledger.follow(head)) return fail();
  make_room(lane);
  place(lane);
}

void Pipeline::handle_paused(LaneId id) { lanes_[id].paused = true; }

void Pipeline::handle_rotated(LaneId id, Instant) {
  LaneState& lane = lanes_[id];
  SEALANE_CHECK(lane.under_way.empty(), "the key changed while a record was on its way");
  relinquish(lane, 0);
  const uint64_t end = lane.frontier();
  for (uint64_t position = lane.head(); position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != kNone) {
      const bool keep = !options_.rules.rotation && message.state == MessageState::ready;
      const SlotId sealed = keep ? std::exchange(message.slot, kNone) : kNone;
      if (keep) message.state = MessageState::waiting;
      displace(lane, message);
      lane.displaced.back().sealed = sealed;
    }
    message = {};
  }
  lane.rotate();
  lane.paused = false;
  lane.plan_due = true;
  place(lane);
}

}  // namespace sealane
