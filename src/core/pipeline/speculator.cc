// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/speculator.h"

#include <algorithm>
#include <utility>

namespace sealane {
namespace {

PipelineOptions for_one_thread(PipelineOptions options) {
  options.lanes = 1;
  options.publish_window = 1;
  options.costs.split = true;
  return options;
}

}  // namespace

Speculator::Speculator(PipelineOptions options, GuessSource& source)
    : pipeline_(for_one_thread(options), &source) {}

// --- 1. and 2.

bool Speculator::handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) {
  if (stopped() || pipeline_.full()) return false;
  const FlightId flight = pipeline_.handle_copy({.direction = call.direction,
                                                 .lane = kLane,
                                                 .host = call.host,
                                                 .memory = MemoryKind::pinned,
                                                 .leaves = side == HostSide::snapshot},
                                                now);
  flights_[copy] = flight;
  copies_[flight] = copy;
  pump(now);
  return true;
}

void Speculator::handle_turn(CopyId copy, Instant now) {
  if (stopped()) return;
  pipeline_.handle_ready(flights_.at(copy), now);
  pump(now);
}

// --- 3. the crossing

std::optional<WireTurn> Speculator::next_turn(Instant now) {
  pump(now);
  if (stopped() || turns_.empty()) return std::nullopt;
  const auto front = turns_.front();
  turns_.pop_front();
  sent_ = 0;
  if (const Pad* pad = std::get_if<Pad>(&front)) {
    pads_end_ = pad->position + pad->count;
    messages_ = 0;
    return turn_ = WireTurn{.pads = pad->count};
  }
  publication_ = std::get<Publish>(front);
  const FlightId flight = publication_->flight;
  const uint64_t size = pipeline_.message_bytes_of(flight);
  messages_ = 1 + pipeline_.following(kLane);
  WireTurn turn{.copy = copies_.at(flight), .offset = publication_->message * size};
  turn.bytes = std::min(messages_ * size, pipeline_.host_of(flight).bytes - turn.offset);
  return turn_ = turn;
}

std::optional<Publish> Speculator::next_message(Instant now) {
  if (sent_ >= messages_) return std::nullopt;
  if (!publication_) {
    pump(now);
    if (turns_.empty()) return std::nullopt;
    const Publish* next = std::get_if<Publish>(&turns_.front());
    if (next == nullptr) {
      stopped_ = true;  // following() promised it: the books are wrong
      return std::nullopt;
    }
    publication_ = *next;
    turns_.pop_front();
  }
  return publication_;
}

SlotId Speculator::answer(Epoch epoch, uint64_t position) {
  const SlotId slot = publication_->slot;
  if (slot == kNone) return kNone;
  const SafetyRules& rules = pipeline_.options().rules;
  const bool same_key = publication_->epoch == epoch || !rules.rotation;
  const bool same_place = publication_->position == position || !rules.message_match;
  if (same_key && (same_place || publication_->epoch != epoch)) return slot;
  if (rules.iv_once) actions_.push_back(Void{std::exchange(publication_->slot, kNone)});
  return kNone;
}

void Speculator::handle_sent(Instant now) {
  const Publish sent = *std::exchange(publication_, std::nullopt);
  pipeline_.handle_published(kLane, sent.position, now);
  ++sent_;
  if (sent_ < messages_) pump(now);
}

// Nothing is given to the workers yet: the thread is about to ask for the next copy if there is
// one, and would wait for whoever has just begun to arm the guard of that very range.
void Speculator::handle_turn_over(Epoch epoch, uint64_t next, bool succeeded, Instant now) {
  const WireTurn turn = *std::exchange(turn_, std::nullopt);
  if (!succeeded) stopped_ = true;
  if (stopped()) return;
  if (turn.copy == kNoCopy) pipeline_.handle_published(kLane, pads_end_ - 1, now);
  const LaneState& lane = pipeline_.lane(kLane);
  if (epoch != lane.ledger.epoch() || next < lane.head()) {
    // However many keys have passed, the plan is made anew under the one there is now.
    do {
      pipeline_.handle_rotated(kLane, now);
    } while (pipeline_.lane(kLane).ledger.epoch().number < epoch.number);
  }
  if (next > pipeline_.lane(kLane).head()) pipeline_.handle_consumed(kLane, next, now);
}

// To the device the last message has ended it already.
void Speculator::handle_over(CopyId copy, bool succeeded, Instant now) {
  const auto found = flights_.find(copy);
  if (found == flights_.end()) return;
  const FlightId flight = found->second;
  const bool outward = pipeline_.direction_of(flight) == Direction::to_host;
  flights_.erase(found);
  copies_.erase(flight);
  if (!succeeded) stopped_ = true;
  if (stopped() || !outward) return;
  const uint32_t messages =
      message_count(pipeline_.host_of(flight).bytes, pipeline_.message_bytes_of(flight));
  for (uint32_t i = 0; i < messages; ++i) {
    pipeline_.handle_arrived(flight, i, now);
    pipeline_.handle_opened(flight, i, true, now);
  }
  pump(now);
}

void Speculator::handle_freed(const Range& host, Instant now) {
  pipeline_.handle_freed(host, now);
  pump(now);
}

bool Speculator::reads(const Range& host) const { return pipeline_.sealing_from(host); }

// --- 4. workers

// Not between the last message of a crossing and its end: counters are compared first, and nothing
// new may be on its way then.
void Speculator::pump(Instant now) {
  if (turn_ && sent_ >= messages_) return;
  while (!stopped()) {
    const auto action = pipeline_.poll(now);
    if (!action) return;
    if (const Publish* publish = std::get_if<Publish>(&*action)) {
      turns_.emplace_back(*publish);
    } else if (const Pad* pad = std::get_if<Pad>(&*action)) {
      turns_.emplace_back(*pad);
    } else if (!std::holds_alternative<Done>(*action) && !std::holds_alternative<Open>(*action)) {
      actions_.push_back(*action);
    }
  }
}

std::optional<Action> Speculator::poll(Instant now) {
  pump(now);
  if (actions_.empty()) return std::nullopt;
  const Action action = actions_.front();
  actions_.pop_front();
  return action;
}

}  // namespace sealane
