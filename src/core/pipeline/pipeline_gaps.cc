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

#include <utility>

#include "core/pipeline/pipeline.h"

namespace sealane {
namespace {

// The paper's rules, for policies that do not decide by cost.
constexpr Duration kPaperHold{500'000};
constexpr uint64_t kPaperPads = 8;

}  // namespace

// One step towards `target`, the first message that may go.
bool Pipeline::resolve(LaneState& lane, uint64_t target, Instant now) {
  const Message& head = lane.at(lane.head());
  if (head.flight != kNone) return pass_request(lane, target, now);
  if (head.state != MessageState::hole && head.state != MessageState::orphaned) {
    return pass_guess(lane, target, now);
  }
  lane.hold_until.reset();
  uint64_t end = lane.head();
  while (end < target && lane.at(end).state == head.state && lane.at(end).flight == kNone) ++end;
  const bool holes = head.state == MessageState::hole;
  if (holes && may_move(lane, target) && better_move(end - lane.head(), move_cost(lane, target))) {
    move_to_head(lane, lane.at(target).flight);
    return true;
  }
  return pad(lane, end);
}

bool Pipeline::better_move(uint64_t gap, Duration move) const {
  if (!options_.policy.by_cost) return gap > kPaperPads;
  return move < options_.costs.pad * static_cast<int64_t>(gap);
}

// True while the lane should wait; the first call says so with an action.
bool Pipeline::hold(LaneState& lane, uint64_t target, Duration most, Instant now) {
  if (!lane.hold_until || lane.hold_target != target) {
    lane.hold_until = now + most;
    lane.hold_target = target;
    if (most > Duration{0}) {
      ++stats_.held;
      actions_.push(Hold{lane.id, lane.at(target).flight, *lane.hold_until});
    }
  }
  return now < *lane.hold_until;
}

bool Pipeline::pass_request(LaneState& lane, uint64_t target, Instant now) {
  Message& head = lane.at(lane.head());
  if (head.state == MessageState::sealing || head.state == MessageState::spoiled) return false;
  const bool can_trade = tradable(head) && tradable(lane.at(target));
  const Duration cost = can_trade ? reseal_cost(head) + reseal_cost(lane.at(target))
                                  : options_.costs.pad + reseal_cost(head);
  if (hold(lane, target, cost, now)) return false;
  lane.hold_until.reset();
  if (can_trade) {
    flights_[head.flight].bypassed = true;
    trade(lane, lane.head(), target);
    return true;
  }
  flights_[head.flight].bypassed = true;
  displace(lane, head, VoidReason::passed);
  return pad(lane, lane.head() + 1);
}

bool Pipeline::pass_guess(LaneState& lane, uint64_t target, Instant now) {
  const uint64_t gap = lane.planned.front().messages;
  const bool can_move = may_move(lane, target);
  const Duration move = can_move ? move_cost(lane, target) : Duration::max();
  if (!lane.synchronised) {
    const Duration pads = options_.costs.pad * static_cast<int64_t>(gap);
    const Duration most = options_.policy.by_cost ? std::min(pads, move) : kPaperHold;
    if (hold(lane, target, most, now)) return false;
  }
  lane.hold_until.reset();
  if (can_move && better_move(gap, move)) {
    move_to_head(lane, lane.at(target).flight);
  } else {
    void_planned(lane, 0, VoidReason::passed);  // now a gap of holes
  }
  return true;
}

// Its bytes are still somewhere other than in its record.
bool Pipeline::tradable(const Message& message) const {
  if (message.state != MessageState::waiting && message.state != MessageState::ready) return false;
  const Flight& flight = flights_[message.flight];
  return message.state == MessageState::waiting || flight.snapshot || !flight.released ||
         flight.memory == MemoryKind::pinned;
}

Duration Pipeline::reseal_cost(const Message& message) const {
  return message.state == MessageState::ready ? options_.costs.seal(message.host.bytes)
                                              : Duration{0};
}

void Pipeline::trade(LaneState& lane, uint64_t first, uint64_t second) {
  Message& a = lane.at(first);
  Message& b = lane.at(second);
  for (Message* message : {&a, &b}) {
    if (message->state == MessageState::ready) {
      void_slot(message->slot, VoidReason::passed);
      ++flights_[message->flight].unsealed;
      ++stats_.resealed;
    }
    message->state = MessageState::waiting;
    message->slot = kNone;
  }
  std::swap(a.flight, b.flight);
  std::swap(a.index, b.index);
  std::swap(a.host, b.host);
  std::swap(a.reopen, b.reopen);
  lane.wake(first);
}

// Only what can be sealed again from the program's memory.
bool Pipeline::may_move(const LaneState& lane, uint64_t target) const {
  const Message& message = lane.at(target);
  return !flights_[message.flight].snapshot && tradable(message);
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
    if (lane.planned[i].first > target) {
      lost += costs.seal(lane.planned[i].host.bytes) / costs.workers;
    }
  }
  return lost;
}

// Nobody has the positions before `end`, or only workers that seal for nobody: those records stay
// private, and the positions are sent as no-ops like the others.
bool Pipeline::pad(LaneState& lane, uint64_t end) {
  const uint64_t first = lane.head();
  const uint64_t count = end - first;
  if (lane.ledger.blocks_left() < count) return false;  // wait for the rotation
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane.at(position);
    const bool minted = message.position || lane.reserve(position, 0) != nullptr;
    if (!minted || !lane.ledger.publish(std::move(*message.position))) {
      fail();
      return false;
    }
    message = {};
  }
  stats_.padded += count;
  account_.spend(options_.costs.pad * static_cast<int64_t>(count));
  lane.under_way.push({.position = end - 1});
  lane.last_flight = kNone;
  actions_.push(Pad{lane.id, first, count});
  return true;
}

void Pipeline::move_to_head(LaneState& lane, FlightId id) {
  relinquish(lane, 0, VoidReason::passed);
  const uint64_t end = lane.frontier();
  for (uint64_t position = lane.head(); position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != id) continue;
    const bool with_worker =
        message.state == MessageState::sealing || message.state == MessageState::spoiled;
    if (with_worker) continue;  // it keeps its place
    displace(lane, message, VoidReason::passed);
    lane.give_back(message);
  }
  place(lane);
}

void Pipeline::displace_all(LaneState& lane, uint64_t first, uint64_t end) {
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != kNone) displace(lane, message, VoidReason::passed);
  }
}

// A requested message loses its position; the caller decides what becomes of the position.
void Pipeline::displace(LaneState& lane, Message& message, VoidReason why) {
  Flight& flight = flights_[message.flight];
  Displaced lost{.flight = message.flight, .index = message.index, .reopen = message.reopen};
  switch (message.state) {
    case MessageState::sealing:
    case MessageState::spoiled:
      slots_.orphan(message.slot, why);
      break;
    case MessageState::ready:
      if (!flight.snapshot && flight.memory != MemoryKind::pinned && flight.released) {
        lost.reopen = message.slot;  // the only place the bytes still are
      } else {
        void_slot(message.slot, why);
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
  while (!lane.planned.empty() && lane.planned.front().first < head) {
    void_planned(lane, 0, VoidReason::passed);
  }
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
  relinquish(lane, 0, VoidReason::rotated);
  const uint64_t end = lane.frontier();
  for (uint64_t position = lane.head(); position < end; ++position) {
    Message& message = lane.at(position);
    if (message.flight != kNone) displace(lane, message, VoidReason::rotated);
    message = {};
  }
  lane.rotate();
  lane.paused = false;
  lane.plan_due = true;
  place(lane);
}

}  // namespace sealane
