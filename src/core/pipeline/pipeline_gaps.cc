// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When the message that may go is not at the head of the lane_. What stands at the head is a hole,
// a guess nobody asked for, or a request that still waits for its stream. By cost:
//
//   hold    wait a little: the one before may come. Never longer than the cheapest other way takes,
//           so at worst it doubles the cost; never for a hole.
//   trade   a request that may not go and one that may change places. Unsealed ones lose nothing.
//   pad     send no-op messages up to it. A guess in between is voided.
//   move    void all guesses and seal it again at the head.
//
// The lane never waits for a request that is not ready longer than a hold: it may be waiting for a
// kernel that waits for this very copy.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/pipeline/pipeline.h"

namespace sealane {
namespace {

// The paper's rules, for policies that do not decide by cost.
constexpr Duration kPaperHold{500'000};
constexpr uint64_t kPaperPads = 8;

// No worker has it: it can be sealed again, for another position.
bool is_idle(const Message& message) {
  return message.state == MessageState::waiting || message.state == MessageState::ready;
}

}  // namespace

// One step towards `target`, the first message that may go.
bool Pipeline::resolve(uint64_t target, Instant now) {
  const Message& head = lane_.at(lane_.head());
  if (head.flight != kNone) return pass_request(target, now);
  if (head.state != MessageState::hole && head.state != MessageState::orphaned) {
    return pass_guess(target, now);
  }
  lane_.hold_until.reset();
  uint64_t end = lane_.head();
  while (end < target && lane_.at(end).state == head.state && lane_.at(end).flight == kNone) ++end;
  const bool holes = head.state == MessageState::hole;
  if (holes && is_idle(lane_.at(target)) && better_move(end - lane_.head(), move_cost(target))) {
    move_to_head(lane_.at(target).flight);
    return true;
  }
  return pad(end);
}

bool Pipeline::better_move(uint64_t gap, Duration move) const {
  if (!options_.policy.by_cost) return gap > kPaperPads;
  return move < options_.costs.pad * static_cast<int64_t>(gap);
}

// True while the lane should wait.
bool Pipeline::hold(uint64_t target, Duration most, Instant now) {
  if (!lane_.hold_until || lane_.hold_target != target) {
    lane_.hold_until = now + most;
    lane_.hold_target = target;
    if (most > Duration{0}) ++stats_.held;
  }
  return now < *lane_.hold_until;
}

bool Pipeline::pass_request(uint64_t target, Instant now) {
  Message& head = lane_.at(lane_.head());
  if (head.state == MessageState::sealing || head.state == MessageState::spoiled) return false;
  const bool can_trade = is_idle(head) && is_idle(lane_.at(target));
  const Duration cost = can_trade ? reseal_cost(head) + reseal_cost(lane_.at(target))
                                  : options_.costs.pad + reseal_cost(head);
  if (hold(target, cost, now)) return false;
  lane_.hold_until.reset();
  if (can_trade) {
    flights_[head.flight].bypassed = true;
    trade(lane_.head(), target);
    return true;
  }
  flights_[head.flight].bypassed = true;
  displace(head, VoidReason::passed);
  return pad(lane_.head() + 1);
}

bool Pipeline::pass_guess(uint64_t target, Instant now) {
  const uint64_t gap = lane_.planned.front().messages;
  const bool can_move = is_idle(lane_.at(target));
  const Duration move = can_move ? move_cost(target) : Duration::max();
  const Duration pads = options_.costs.pad * static_cast<int64_t>(gap);
  const Duration most = options_.policy.by_cost ? std::min(pads, move) : kPaperHold;
  if (hold(target, most, now)) return false;
  lane_.hold_until.reset();
  if (can_move && better_move(gap, move)) {
    move_to_head(lane_.at(target).flight);
  } else {
    void_planned(0, VoidReason::passed);  // now a gap of holes
  }
  return true;
}

Duration Pipeline::reseal_cost(const Message& message) const {
  return message.state == MessageState::ready ? options_.costs.seal(message.host.bytes)
                                              : Duration{0};
}

void Pipeline::trade(uint64_t first, uint64_t second) {
  Message& a = lane_.at(first);
  Message& b = lane_.at(second);
  for (Message* message : {&a, &b}) {
    if (message->state == MessageState::ready) {
      void_slot(message->slot, VoidReason::passed);
      ++stats_.resealed;
    }
    message->state = MessageState::waiting;
    message->slot = kNone;
  }
  std::swap(a.flight, b.flight);
  std::swap(a.index, b.index);
  std::swap(a.host, b.host);
  lane_.wake(first);
}

// What is lost by sealing the flight anew, and the guesses with it.
Duration Pipeline::move_cost(uint64_t target) const {
  const Costs& costs = options_.costs;
  const Flight& flight = flights_[lane_.at(target).flight];
  const uint64_t bytes = flight.host.bytes;
  Duration lost{0};
  if (lane_.at(target).state == MessageState::ready) {
    lost += costs.live(bytes, flight.messages) - costs.ready(bytes, flight.messages);
  }
  for (size_t i = 0; i < lane_.planned.size(); ++i) {
    if (lane_.planned[i].first > target) {
      lost += costs.seal(lane_.planned[i].host.bytes) / costs.workers;
    }
  }
  return lost;
}

// Nobody has the positions before `end`, or only workers that seal for nobody: those records stay
// private, and the positions are sent as no-ops like the others.
bool Pipeline::pad(uint64_t end) {
  const uint64_t first = lane_.head();
  const uint64_t count = end - first;
  if (lane_.ledger.blocks_left() < count) return false;  // wait for the rotation
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane_.at(position);
    const bool minted = message.position || lane_.reserve(position, 0) != nullptr;
    if (!minted || !lane_.ledger.publish(std::move(*message.position))) {
      fail();
      return false;
    }
    message = {};
  }
  stats_.padded += count;
  account_.spend(options_.costs.pad * static_cast<int64_t>(count));
  lane_.under_way = {.position = end - 1};
  actions_.push(Pad{first, count});
  return true;
}

void Pipeline::move_to_head(FlightId id) {
  relinquish(0, VoidReason::passed);
  const uint64_t end = lane_.frontier();
  for (uint64_t position = lane_.head(); position < end; ++position) {
    Message& message = lane_.at(position);
    if (message.flight != id) continue;
    const bool with_worker =
        message.state == MessageState::sealing || message.state == MessageState::spoiled;
    if (with_worker) continue;  // it keeps its place
    displace(message, VoidReason::passed);
    lane_.give_back(message);
  }
  place();
}

// A requested message loses its position; the caller decides what becomes of the position.
void Pipeline::displace(Message& message, VoidReason why) {
  Flight& flight = flights_[message.flight];
  if (message.state == MessageState::sealing || message.state == MessageState::spoiled) {
    slots_.orphan(message.slot, why);
  } else if (message.state == MessageState::ready) {
    void_slot(message.slot, why);
  }
  ++stats_.resealed;
  --flight.in_ring;
  if (flight.ready) --lane_.eligible;
  lane_.displaced.push({.flight = message.flight, .index = message.index});
  message.state = MessageState::waiting;
  message.flight = kNone;
  message.slot = kNone;
}

// --- the lane moved without us

void Pipeline::handle_consumed(uint64_t head, Instant) {
  const uint64_t first = lane_.head();
  if (head <= first) {
    if (head < first) fail();  // the counters disagree
    return;
  }
  lane_.extra += static_cast<uint32_t>(head - first);
  while (!lane_.planned.empty() && lane_.planned.front().first < head) {
    void_planned(0, VoidReason::passed);
  }
  const uint64_t end = std::min(head, lane_.frontier());
  empty(first, end, VoidReason::passed);
  if (!lane_.ledger.follow(head)) return fail();
  make_room();
  place();
}

void Pipeline::handle_rotated(Instant) {
  SEALANE_CHECK(!lane_.under_way, "the key changed while a record was on its way");
  relinquish(0, VoidReason::rotated);
  empty(lane_.head(), lane_.frontier(), VoidReason::rotated);
  lane_.rotate();
  lane_.plan_due = true;
  place();
}

// Whoever was there has no position any more.
void Pipeline::empty(uint64_t first, uint64_t end, VoidReason why) {
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane_.at(position);
    if (message.flight != kNone) displace(message, why);
    message = {};
  }
}

}  // namespace sealane
