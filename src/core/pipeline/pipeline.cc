// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

namespace sealane {

Pipeline::Pipeline(const PipelineOptions& options, GuessSource& source)
    : source_(source),
      lane_(options),
      plan_(lane_, source),
      placement_(lane_, plan_.slots_pay()),
      sealers_(lane_, plan_),
      gap_(lane_, plan_, placement_),
      unlearnt_(kUnlearntMax) {}

// --- 1. a request

// All workers share a message that may go, so there is no use in one of them having it already: the
// lane would wait for that one. A request is sealed early only if its stream keeps it waiting, and
// for longer than the lane's thread takes to learn that it does not.
FlightId Pipeline::handle_copy(const CopyRequest& copy, Instant now) {
  const FlightId id =
      lane_.open_flight({.host = copy.host,
                         .leaves = copy.leaves,
                         .early_from = now + lane_.options.costs.toll,
                         .message_bytes = lane_.message_bytes,
                         .messages = message_count(copy.host.bytes, lane_.message_bytes)});
  if (unlearnt_.full()) learn();
  unlearnt_.push({copy.direction, copy.host});
  if (copy.direction == Direction::to_host) {
    lane_.inbound.push(id);
    plan_.handle_inbound(copy.host);
    return id;
  }
  ++lane_.stats.requests;
  lane_.stats.messages += lane_.flight(id).messages;
  plan_due_ = true;
  plan_.handle_request(copy.host);
  if (!plan_.claim(id)) {
    placement_.add(id);
    place();
  }
  return id;
}

// Whoever asks for a copy is not kept waiting for that: it is done when it matters, before anything
// is guessed or forgotten.
void Pipeline::learn() {
  for (; !unlearnt_.empty(); unlearnt_.pop()) source_.observe(unlearnt_.front());
}

// Requested messages go before guesses: what stands where they must go is given up.
void Pipeline::place() {
  plan_.make_room(placement_.placeable());
  placement_.place();
}

// --- 4. and 5. publish

void Pipeline::handle_ready(FlightId id, Instant now) {
  sealers_.handle_lane_busy(now);
  Flight& flight = lane_.flight(id);
  SEALANE_CHECK(flight.in_use && !flight.ready, "a copy became ready twice");
  flight.ready = true;
  placement_.handle_ready(id);
  lane_.eligible += flight.in_ring;
  if (flight.bypassed) lane_.wake(lane_.head());
}

bool Pipeline::advance(Instant now) {
  if (placement_.waiting()) place();
  if (lane_.under_way || lane_.eligible == 0) return false;
  Message& message = lane_.at(lane_.head());
  if (!lane_.may_go(message)) {
    uint64_t target = lane_.head() + 1;
    while (!lane_.may_go(lane_.at(target))) ++target;
    SEALANE_CHECK(target < lane_.frontier(), "lost an eligible message");
    return gap_.close(target, now);
  }
  gap_.end_hold();
  if (message.state == MessageState::ready) {
    sealers_.handle_sent(message, now);
  } else if (message.state != MessageState::waiting) {
    sealers_.handle_lane_waits(now);
    return false;
  }
  publish(message);  // no worker has begun: the lane seals it itself, with all of them
  return true;
}

void Pipeline::publish(Message& message) {
  const uint64_t position = lane_.head();
  if (!lane_.expose(message)) return;
  lane_.under_way = {
      .position = position, .flight = message.flight, .slot = message.slot, .host = message.host};
  lane_.actions.push(Publish{.position = position,
                             .flight = message.flight,
                             .message = message.index,
                             .slot = message.slot});
  --lane_.flight(message.flight).in_ring;
  --lane_.eligible;
  message = {};
}

// --- 6. done

void Pipeline::handle_published(uint64_t position, Instant now) {
  sealers_.handle_lane_busy(now);
  SEALANE_CHECK(lane_.under_way && lane_.under_way->position == position,
                "the lane published out of order");
  const UnderWay done = *std::exchange(lane_.under_way, std::nullopt);
  if (done.flight == kNone) return;
  if (done.slot != kNone) lane_.slots.give(done.slot);
  Flight& flight = lane_.flight(done.flight);
  if (++flight.sent == flight.messages) lane_.close_flight(done.flight);
}

void Pipeline::handle_arrived(FlightId id) {
  size_t i = 0;
  while (lane_.inbound[i] != id) ++i;
  lane_.inbound.erase(i);
  lane_.close_flight(id);
  plan_due_ = true;  // a block just swapped out is the best guess for the next swap-in
}

// --- the lane moved without us, or memory did

void Pipeline::handle_consumed(uint64_t head) {
  const uint64_t first = lane_.head();
  if (head == first) return;
  lane_.failed = lane_.failed || head < first;  // the counters disagree
  if (lane_.failed) return;
  plan_.handle_consumed(head);
  placement_.empty(first, std::min(head, lane_.frontier()), VoidReason::passed);
  lane_.failed = !lane_.ledger.follow(head);
  if (!lane_.failed) place();
}

void Pipeline::handle_rotated() {
  SEALANE_CHECK(!lane_.under_way, "the key changed while a record was on its way");
  plan_.give_all(VoidReason::rotated);
  placement_.empty(lane_.head(), lane_.frontier(), VoidReason::rotated);
  lane_.rotate();
  gap_.end_hold();
  plan_due_ = true;
  placement_.place();
}

void Pipeline::handle_message_bytes(uint64_t bytes) {
  SEALANE_CHECK(bytes > 0, "a message carries something");
  lane_.message_bytes = bytes;
  plan_.give_all(VoidReason::passed);
  plan_.handle_room();
  plan_due_ = true;
}

void Pipeline::handle_room(uint64_t bytes) {
  lane_.slots.set_bytes_max(std::min(bytes, lane_.options.slot_bytes_max));
  plan_.handle_room();
}

void Pipeline::handle_allocated(const Range& range) {
  learn();
  source_.allow(range);
}

void Pipeline::handle_freed(const Range& range) {
  learn();
  source_.forget(range);
  plan_.handle_freed(range);
}

// --- the driver asks

std::optional<Action> Pipeline::poll(Instant now) {
  sealers_.handle_time(now);
  while (!failed()) {
    if (!lane_.actions.empty()) {
      const Action action = lane_.actions.front();
      lane_.actions.pop();
      return action;
    }
    if (advance(now) || sealers_.begin_next(now)) continue;
    if (!std::exchange(plan_due_, false)) break;
    learn();
    plan_.extend(placement_.requested_end(), now);
  }
  return std::nullopt;
}

std::optional<Instant> Pipeline::deadline() const {
  const auto hold = gap_.deadline();
  const auto quiet = sealers_.deadline();
  return hold && quiet ? std::min(hold, quiet) : hold ? hold : quiet;
}

bool Pipeline::waits_for_worker() const {
  if (lane_.under_way || lane_.eligible == 0) return false;
  const Message& next = lane_.at(lane_.head());
  return next.with_worker() && lane_.may_go(next);
}

uint32_t Pipeline::following() const {
  if (!lane_.under_way || lane_.under_way->flight == kNone) return 0;
  const UnderWay& last = *lane_.under_way;
  uint64_t expected = last.host.end();
  uint32_t count = 0;
  while (count < Ledger::kWindow) {
    const Message& message = lane_.at(lane_.head() + count);
    if (message.flight != last.flight || message.host.address != expected) break;
    expected = message.host.end();
    ++count;
  }
  return count;
}

}  // namespace sealane
