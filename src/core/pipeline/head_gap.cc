// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/head_gap.h"

#include <algorithm>
#include <utility>

namespace sealane {
namespace {

// The paper's rules, for policies that do not decide by cost.
constexpr Duration kPaperHold{500'000};
constexpr uint64_t kPaperPads = 8;

}  // namespace

bool HeadGap::close(uint64_t target, Instant now) {
  const Message& head = lane_.at(lane_.head());
  if (head.flight != kNone) return pass_request(target, now);
  const bool nobodys = head.state == MessageState::hole || head.state == MessageState::orphaned;
  return nobodys ? pass_holes(target) : pass_guess(target, now);
}

bool HeadGap::pass_holes(uint64_t target) {
  const MessageState state = lane_.at(lane_.head()).state;
  end_hold();
  uint64_t end = lane_.head();
  while (end < target && lane_.at(end).state == state && lane_.at(end).flight == kNone) ++end;
  const bool movable = state == MessageState::hole && lane_.at(target).idle();
  if (movable && better_move(end - lane_.head(), move_cost(target))) {
    move_to_head(lane_.at(target).flight);
    return true;
  }
  return pad(end);
}

bool HeadGap::better_move(uint64_t gap, Duration move) const {
  if (!lane_.options.policy.by_cost) return gap > kPaperPads;
  return move < costs().pad * static_cast<int64_t>(gap);
}

// True while the lane should wait.
bool HeadGap::hold(uint64_t target, Duration most, Instant now) {
  if (!hold_until_ || hold_target_ != target) {
    hold_until_ = now + most;
    hold_target_ = target;
    if (most > Duration{0}) ++lane_.stats.held;
  }
  if (now < *hold_until_) return true;
  end_hold();
  return false;
}

bool HeadGap::pass_request(uint64_t target, Instant now) {
  Message& head = lane_.at(lane_.head());
  if (head.with_worker()) return false;
  const bool can_trade = head.idle() && lane_.at(target).idle();
  const Duration other = can_trade ? reseal_cost(lane_.at(target)) : costs().pad;
  if (hold(target, reseal_cost(head) + other, now)) return false;
  lane_.flight(head.flight).bypassed = true;
  if (can_trade) {
    trade(lane_.head(), target);
    return true;
  }
  placement_.displace(head, VoidReason::passed);
  return pad(lane_.head() + 1);
}

bool HeadGap::pass_guess(uint64_t target, Instant now) {
  const uint64_t gap = plan_.planned().front().messages;
  const bool can_move = lane_.at(target).idle();
  const Duration move = can_move ? move_cost(target) : Duration::max();
  const Duration pads = costs().pad * static_cast<int64_t>(gap);
  const Duration most = lane_.options.policy.by_cost ? std::min(pads, move) : kPaperHold;
  if (hold(target, most, now)) return false;
  if (can_move && better_move(gap, move)) {
    move_to_head(lane_.at(target).flight);
  } else {
    plan_.give_first(VoidReason::passed);  // now a gap of holes
  }
  return true;
}

Duration HeadGap::reseal_cost(const Message& message) const {
  return message.state == MessageState::ready ? costs().seal(message.host.bytes) : Duration{0};
}

void HeadGap::trade(uint64_t first, uint64_t second) {
  Message& a = lane_.at(first);
  Message& b = lane_.at(second);
  for (Message* message : {&a, &b}) {
    if (message->state == MessageState::ready) {
      lane_.void_slot(message->slot, VoidReason::passed);
      ++lane_.stats.resealed;
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
Duration HeadGap::move_cost(uint64_t target) const {
  const Flight& flight = lane_.flight(lane_.at(target).flight);
  Duration lost{0};
  if (lane_.at(target).state == MessageState::ready) {
    lost += costs().gain(flight.host.bytes, flight.messages);
  }
  for (size_t i = 0; i < plan_.planned().size(); ++i) {
    const Planned& planned = plan_.planned()[i];
    if (planned.first > target) lost += costs().seal(planned.host.bytes) / costs().workers;
  }
  return lost;
}

// Nobody has the positions before `end`, or only workers that seal for nobody: those records stay
// private, and the positions are sent as no-ops like the others.
bool HeadGap::pad(uint64_t end) {
  const uint64_t first = lane_.head();
  const uint64_t count = end - first;
  if (lane_.ledger.blocks_left() < count) return false;  // wait for the rotation
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane_.at(position);
    lane_.failed = !message.position && lane_.reserve(position, 0) == nullptr;
    if (lane_.failed || !lane_.expose(message)) return false;
    message = {};
  }
  lane_.stats.padded += count;
  plan_.charge(costs().pad * static_cast<int64_t>(count));
  lane_.under_way = {.position = end - 1};
  lane_.actions.push(Pad{first, count});
  return true;
}

void HeadGap::move_to_head(FlightId id) {
  plan_.give_all(VoidReason::passed);
  const uint64_t end = lane_.frontier();
  for (uint64_t position = lane_.head(); position < end; ++position) {
    Message& message = lane_.at(position);
    if (message.flight != id || message.with_worker()) continue;  // that keeps its place
    placement_.displace(message, VoidReason::passed);
    lane_.give_back(message);
  }
  placement_.place();
}

}  // namespace sealane
