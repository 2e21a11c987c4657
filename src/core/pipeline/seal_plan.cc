// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/seal_plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sealane {
namespace {

constexpr size_t kGuessesMax = 32;
constexpr size_t kGuessesMore = 8;  // beyond what is planned already
constexpr float kConfidenceMin = 0.5F;

}  // namespace

std::string_view to_string(VoidReason reason) {
  static constexpr std::array<std::string_view, kVoidReasons> kNames = {
      "stale", "passed", "rotated", "budget", "unforeseen", "freed", "costly"};
  return kNames[static_cast<size_t>(reason)];
}

SealPlan::SealPlan(LaneBooks& lane, GuessSource& source)
    : lane_(lane),
      source_(source),
      policy_(lane.options.policy),
      costs_(lane.options.costs),
      slots_pay_(policy_.forced() || costs_.slots_pay()),
      planned_(kPlannedMax) {
  if (!policy_.by_cost) depth_bytes_ = depth_max();  // the paper has no such limit
}

// --- plan

// Walks along the guesses and the plan. What is expected but cannot be sealed yet (it is on its way
// from the device, planned already for an earlier turn, or changes too often) gets a gap of its
// size: a later plan fills it, or the live copy does.
void SealPlan::extend(uint64_t at, Instant now) {
  if (!lane_.worth_guessing || (!account_.open(now) && !policy_.forced())) return;
  std::array<Guess, kGuessesMax> guesses;
  const size_t wanted = std::min(planned_.size() + kGuessesMore, kGuessesMax);
  const size_t count = source_.predict({guesses.data(), wanted});
  const uint32_t leave = leeway();
  size_t agreed = 0;
  size_t considered = 0;
  uint64_t bytes = 0;  // of all considered but the first
  for (size_t i = 0; i < count && guesses[i].confidence >= kConfidenceMin; ++i) {
    const Range& host = guesses[i].host;
    const uint32_t messages = message_count(host.bytes, lane_.message_bytes);
    if (host.bytes < policy_.bulk_bytes_min) continue;
    if (considered++ > 0) bytes += host.bytes;
    if (bytes > depth_bytes_) break;
    if (agreed < planned_.size() && planned_[agreed].host == host) {
      at = planned_[agreed++].first + messages;
      continue;
    }
    at += leave;
    const bool fits = agreed == planned_.size() || at + messages <= planned_[agreed].first;
    if (!fits) relinquish(agreed, VoidReason::unforeseen);
    if (sealable(host) && !add(host, agreed++, at)) break;
    at += messages;
  }
}

// At the positions from `first` on, as the plan's `index`.
bool SealPlan::add(const Range& host, size_t index, uint64_t first) {
  if (planned_.full() || host.bytes > depth_max()) return false;
  const uint32_t messages = message_count(host.bytes, lane_.message_bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    const Range part = message_range(host, i, lane_.message_bytes);
    Message* message = lane_.reserve(first + i, part.bytes);
    if (message == nullptr) {
      while (i-- > 0) lane_.give_back(lane_.at(first + i));
      return false;
    }
    message->index = i;
    message->host = part;
  }
  lane_.wake(first);
  planned_.insert(index, {.host = host, .first = first, .messages = messages});
  ++lane_.stats.guesses;
  return true;
}

// One guard per byte: arming it again would forget what was written since.
bool SealPlan::sealable(const Range& host) const {
  for (size_t i = 0; i < planned_.size(); ++i) {
    if (planned_[i].host.overlaps(host)) return false;
  }
  return worth_sealing(host) && !lane_.comes_in(host);
}

bool SealPlan::worth_sealing(const Range& host) const {
  if (!policy_.by_cost) return true;
  if (!slots_pay_ || changing_.avoid(host)) return false;
  if (policy_.forced()) return true;
  const uint32_t messages = message_count(host.bytes, lane_.message_bytes);
  return costs_.gain(host.bytes, messages) >
         costs_.check(guard_kind(host) == GuardKind::digest, host.bytes, messages);
}

uint32_t SealPlan::leeway() const {
  if (!policy_.by_cost) return policy_.fixed_leeway;
  return leeway_.best(costs_.pad, costs_.seal(lane_.message_bytes) * 4);
}

// A lane cannot plan beyond its window, nor beyond what guesses may take of the budget.
uint64_t SealPlan::depth_max() const {
  const uint64_t window = Ledger::kWindow / 2 * lane_.message_bytes;
  const uint64_t budget = lane_.slots.bytes_max() - lane_.slots.bytes_max() / 8;
  return lane_.options.rules.budget ? std::min(window, budget) : window;
}

// --- a request

void SealPlan::handle_request(const Range& host) {
  leeway_.observe(std::exchange(extra_, 0));
  changing_.requested(host);
}

// The program waits for us, or has promised to leave the source alone: nothing can change between
// this comparison and the claim.
bool SealPlan::claim(FlightId id) {
  Flight& flight = lane_.flight(id);
  size_t found = 0;
  while (found < planned_.size() && planned_[found].host != flight.host) ++found;
  if (found == planned_.size()) return false;

  const Planned planned = planned_[found];
  planned_.erase(found);
  uint32_t ready = 0;
  bool intact = true;
  for (uint32_t i = 0; i < planned.messages; ++i) {
    Message& message = lane_.at(planned.first + i);
    message.flight = id;
    message.index = i;
    intact =
        intact && message.state != MessageState::broken && message.state != MessageState::spoiled;
    // What a worker has not read yet may be changed before it does.
    if (flight.leaves && message.state == MessageState::sealing) {
      message.state = MessageState::spoiled;
    }
    if (message.state == MessageState::broken) message.state = MessageState::waiting;
    if (message.state == MessageState::waiting) lane_.wake(planned.first + i);
    if (message.state == MessageState::ready) ++ready;
  }
  flight.placed = flight.in_ring = planned.messages;
  if (intact) ++lane_.stats.hits;
  lane_.stats.messages_ready += ready;
  if (planned.guard != GuardKind::none) lane_.actions.push(Unguard{planned.host});
  credit(planned, ready, intact);
  return true;
}

// Trust grows with every transfer whose guard held: the first is sealed ahead alone.
void SealPlan::credit(const Planned& planned, uint32_t ready, bool intact) {
  if (planned.guard == GuardKind::none) return;  // no worker had begun
  const uint64_t bytes = planned.host.bytes;
  account_.spend(costs_.check(planned.guard == GuardKind::digest, bytes, planned.messages));
  account_.earn(costs_.gain(bytes, planned.messages) * ready / planned.messages);
  if (!intact) return;
  changing_.held(planned.host);
  depth_bytes_ = std::min(2 * std::max(depth_bytes_, bytes), depth_max());
}

void SealPlan::make_room(uint64_t messages) {
  uint64_t room = 0;
  uint64_t position = lane_.head();
  while (room < messages && !planned_.empty()) {
    while (position < planned_.front().first) {
      if (lane_.at(position++).state == MessageState::hole) ++room;
    }
    if (room < messages) give_first(VoidReason::passed);
  }
}

bool SealPlan::give_last(VoidReason why) {
  if (planned_.empty()) return false;
  give_up(planned_.size() - 1, why);
  return true;
}

// --- guards

size_t SealPlan::find(uint64_t position) const {
  size_t i = 0;
  while (position >= planned_[i].first + planned_[i].messages) ++i;
  return i;
}

bool SealPlan::time_to_guard(uint64_t position) const {
  const Planned& planned = planned_[find(position)];
  if (planned.guard != GuardKind::none || guard_kind(planned.host) != GuardKind::page) return true;
  const uint64_t before = planned.first - lane_.head() + (lane_.under_way ? 1 : 0);
  if (before == 0 || (!lane_.under_way && lane_.at(lane_.head()).flight == kNone)) return true;
  const Duration arming = Costs::bytes_time(costs_.guard_ns_per_byte, planned.host.bytes);
  return arming <= costs_.live(before * lane_.message_bytes, before);
}

// Armed when the first worker is about to read it: a plan that comes too late costs nothing.
void SealPlan::guard(uint64_t position) {
  Planned& planned = planned_[find(position)];
  Duration work = costs_.seal(lane_.at(position).host.bytes);
  if (planned.guard == GuardKind::none) {
    planned.guard = guard_kind(planned.host);
    lane_.actions.push(Guard{planned.host, planned.guard});
    work += Costs::bytes_time(costs_.guard_ns_per_byte, planned.host.bytes);
  }
  const double lost = static_cast<double>(work.count()) * costs_.shared_core;
  account_.spend(Duration(static_cast<int64_t>(lost)));
}

GuardKind SealPlan::guard_kind(const Range& host) const {
  const bool pages = lane_.options.page_guards && !digested_.contains(host);
  return pages ? GuardKind::page : GuardKind::digest;
}

GuardKind SealPlan::guard_of(const Range& host) const {
  for (size_t i = 0; i < planned_.size(); ++i) {
    const Planned& planned = planned_[i];
    if (planned.guard != GuardKind::none && planned.host.overlaps(host)) return planned.guard;
  }
  return GuardKind::none;
}

// What is planned already stays only if it is worth a digest in the request.
void SealPlan::handle_guarded(const Range& range, GuardKind kind) {
  if (kind == GuardKind::digest) {
    digested_.add(range);
  } else {
    digested_.erase(range);
  }
  for (size_t i = planned_.size(); i-- > 0;) {
    Planned& planned = planned_[i];
    const bool told = planned.guard != GuardKind::none && planned.host.overlaps(range);
    if (!told || std::exchange(planned.guard, kind) == kind) continue;
    if (!worth_sealing(planned.host)) give_up(i, VoidReason::costly);
  }
}

void SealPlan::handle_written(const Range& range) {
  for (size_t i = 0; i < planned_.size(); ++i) {
    const Planned& planned = planned_[i];
    const bool guarded = planned.guard != GuardKind::none;
    if (guarded && planned.host.overlaps(range)) break_guard(planned, range);
  }
}

// The messages that carry what was written are wiped and keep their positions: if the copy is
// requested they are sealed then, in their old places.
void SealPlan::break_guard(const Planned& planned, const Range& written) {
  const uint64_t first = std::max(planned.host.address, written.address);
  const uint64_t end = std::min(planned.host.end(), written.end());
  if (planned.guard == GuardKind::page) {
    account_.spend(Costs::bytes_time(costs_.rewrite_ns_per_byte, end - first));
  }
  changing_.strike(planned.host);
  if (policy_.by_cost) depth_bytes_ = 0;  // others may be written too: one, until one holds again
  if (!lane_.options.rules.stale) return;
  for (uint32_t i = 0; i < planned.messages; ++i) {
    Message& message = lane_.at(planned.first + i);
    if (!message.host.overlaps(written)) continue;
    if (message.state == MessageState::ready) {
      lane_.void_slot(std::exchange(message.slot, kNone), VoidReason::stale);
    }
    message.state = message.with_worker() ? MessageState::spoiled : MessageState::broken;
  }
}

// --- give up

void SealPlan::handle_freed(const Range& range) {
  digested_.erase(range);
  give_touched(range, VoidReason::freed);
}

void SealPlan::handle_inbound(const Range& range) { give_touched(range, VoidReason::stale); }

void SealPlan::give_touched(const Range& range, VoidReason why) {
  for (size_t i = planned_.size(); i-- > 0;) {
    if (planned_[i].host.overlaps(range)) give_up(i, why);
  }
}

void SealPlan::handle_room() { depth_bytes_ = std::min(depth_bytes_, depth_max()); }

void SealPlan::handle_consumed(uint64_t head) {
  extra_ += static_cast<uint32_t>(head - lane_.head());
  while (!planned_.empty() && planned_.front().first < head) give_first(VoidReason::passed);
}

void SealPlan::relinquish(size_t first_planned, VoidReason why) {
  if (first_planned >= planned_.size()) return;
  while (planned_.size() > first_planned) give_last(why);
  if (policy_.by_cost) depth_bytes_ = depth_bytes_ * 3 / 4;
}

void SealPlan::give_up(size_t index, VoidReason why) {
  const Planned planned = planned_[index];
  planned_.erase(index);
  ++lane_.stats.relinquished;
  if (planned.guard != GuardKind::none) lane_.actions.push(Unguard{planned.host});
  for (uint32_t i = 0; i < planned.messages; ++i) lane_.abandon(lane_.at(planned.first + i), why);
}

}  // namespace sealane
