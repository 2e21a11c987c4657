// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The life of a copy to the device, in order:
//
//   1. handle_copy    serial    claim what was sealed ahead, or reserve the next positions
//   (pipeline_request.cc)
//   2. plan           serial    ask what comes next, reserve positions and guard it
//   (pipeline_plan.cc)
//   3. dispatch       serial    give messages to workers: requested ones first, then by position
//      handle_sealed  parallel  any number of workers seal, in any order
//   4. handle_ready   serial    nothing before it in its stream is left
//   5. advance        serial    the message whose turn it is goes out; if somebody else's turn
//   comes
//                               first: hold, pad, or move to the front (pipeline_gaps.cc)
//   6. handle_published         the device has it; the last message ends the flight
//
// A copy to the host is observed (1), issued by others, opened message by message as it arrives
// (handle_arrived, handle_opened), and its range becomes a candidate for 2.

#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sealane {
namespace {

// Below this a message is sealed by the lane itself: handing it to a worker costs more.
constexpr uint64_t kWorkerBytesMin = 64_KiB;

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, GuessSource* source)
    : options_(options),
      source_(source),
      slots_(options.slot_bytes_max, options.rules.budget),
      flights_(kFlightsMax),
      flights_free_(kFlightsMax),
      inbound_(kFlightsMax),
      sealing_(SlotPool::kSlotsMax),
      actions_(4 * Ledger::kWindow),
      sealers_(options.costs.sealers()),
      helpers_(options.costs.helpers()),
      slots_pay_(options.policy.forced() || options.costs.slots_pay()) {
  SEALANE_CHECK(options.lanes > 0, "a pipeline needs a lane");
  SEALANE_CHECK(source != nullptr || !options.policy.speculates(), "nobody to guess");
  lanes_.reserve(options.lanes);
  for (LaneId id = 0; id < options.lanes; ++id) {
    lanes_.emplace_back(id, options.key_limits, kFlightsMax, options.publish_window);
  }
  if (!options.policy.by_cost)
    bulk_lane().depth_bytes = depth_max();  // the paper has no such limit
  for (FlightId id = 0; id < kFlightsMax; ++id) flights_free_.push(id);
}

// --- 3. seal

bool Pipeline::dispatch(Instant now) {
  if (!options_.policy.parallel || !slots_pay_) return false;
  if (sealing_.size() >= sealers_) return false;
  if (!quiet(now)) return false;
  // While a message is on its way all workers share its sealing and its sending: what was requested
  // is sealed so when its turn comes.
  const bool shared = options_.costs.split && sending();
  for (LaneState& lane : lanes_) {
    if (!shared && sharing_.open(now) && dispatch_from(lane, false, now)) return true;
  }
  // A worker that has begun cannot be called back: guesses leave free what the lane needs to send
  // what was requested, and wait for what comes from the device.
  LaneState& lane = bulk_lane();
  const bool sending = lane.eligible > 0 || !lane.under_way.empty();
  const uint32_t spare =
      sending ? options_.costs.workers - options_.costs.helpers_most() : sealers_;
  return sealing_.size() + opening_ < spare && dispatch_from(lane, true, now);
}

// Where workers share each message they have time for others only between messages, if that is
// enough, or when the lanes rest. A rest shows by its length: between two copies there is none.
bool Pipeline::quiet(Instant now) {
  if (!options_.costs.split || options_.costs.sealing_fits_between()) return true;
  return !sending() && (!quiet_from_ || now >= *quiet_from_);
}

void Pipeline::stir(Instant now) { quiet_from_ = now + options_.costs.seal(message_bytes_); }

bool Pipeline::sending() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState& lane) {
    return lane.eligible > 0 || !lane.under_way.empty();
  });
}

bool Pipeline::dispatch_from(LaneState& lane, bool ahead, Instant now) {
  lane.seal_from = std::max(lane.seal_from, lane.head());
  bool first = true;
  for (uint64_t position = lane.seal_from; position < lane.frontier(); ++position) {
    const Message& message = lane.at(position);
    if (message.state != MessageState::waiting) continue;
    if (std::exchange(first, false)) lane.seal_from = position;
    if ((message.flight == kNone) != ahead || message.by_lane) continue;
    if (!ahead && flights_[message.flight].snapshot && message.host.bytes < kWorkerBytesMin)
      continue;
    if (!ahead && awaits_open(message, false)) continue;
    if (!ahead && !flights_[message.flight].ready) {
      const Flight& flight = flights_[message.flight];
      if (flight.bypassed || now < flight.early_from) continue;
    }
    if (ahead && !time_to_guard(lane, position)) return false;
    return seal(lane, position);
  }
  return false;
}

bool Pipeline::seal(LaneState& lane, uint64_t position) {
  Message& message = lane.at(position);
  const bool ahead = message.flight == kNone;
  SlotId slot = slots_.take(message.host, ahead, lane.id, position);
  LaneState& guesses = bulk_lane();
  while (slot == kNone && !ahead && !guesses.planned.empty()) {
    void_planned(guesses, guesses.planned.size() - 1, VoidReason::budget);  // needed last
    slot = slots_.take(message.host, ahead, lane.id, position);
  }
  if (slot == kNone) return false;
  message.state = MessageState::sealing;
  message.slot = slot;
  sealing_.push(slot);
  if (ahead) {
    ++stats_.sealed_ahead;
    guard_planned(lane, position);
  }
  actions_.push(Seal{.slot = slot,
                     .lane = lane.id,
                     .position = position,
                     .epoch = lane.ledger.epoch(),
                     .host = message.host,
                     .flight = message.flight,
                     .message = message.index,
                     .reopen = message.reopen});
  return true;
}

// What the worker had. Nothing: nobody wants it any more, or it has to be sealed again.
Message* Pipeline::take_from_worker(SlotId slot) {
  size_t i = 0;
  while (i < sealing_.size() && sealing_[i] != slot) ++i;
  SEALANE_CHECK(i < sealing_.size(), "sealed a slot nobody asked for");
  sealing_.erase(i);

  LaneState& lane = lanes_[slots_[slot].lane];
  Message& message = lane.at(slots_[slot].position);
  if (slots_[slot].orphan) {
    void_slot(slot, slots_[slot].why);
    if (message.state == MessageState::orphaned && message.slot == slot) lane.give_back(message);
    return nullptr;
  }
  if (message.state == MessageState::spoiled) {
    void_slot(slot, VoidReason::stale);
    message.slot = kNone;
    message.state = message.flight == kNone ? MessageState::broken : MessageState::waiting;
    lane.wake(slots_[slot].position);
    return nullptr;
  }
  return &message;
}

void Pipeline::handle_sealed(SlotId slot, Instant) {
  Message* const message = take_from_worker(slot);
  if (message == nullptr) return;
  message->state = MessageState::ready;
  if (message->reopen != kNone) {
    void_slot(std::exchange(message->reopen, kNone), VoidReason::passed);
  } else if (message->flight != kNone) {
    --flights_[message->flight].unsealed;
    release_if_sealed(message->flight);
  }
}

void Pipeline::handle_unsealed(SlotId slot, Instant) {
  Message* const message = take_from_worker(slot);
  if (message == nullptr) return;
  void_slot(std::exchange(message->slot, kNone), VoidReason::budget);
  message->state = message->flight == kNone ? MessageState::broken : MessageState::waiting;
  message->by_lane = true;
}

void Pipeline::handle_room(uint64_t bytes) {
  slots_.set_bytes_max(std::min(bytes, options_.slot_bytes_max));
  LaneState& lane = bulk_lane();
  lane.depth_bytes = std::min(lane.depth_bytes, depth_max());
}

// What a copy to the host is about to write must not be read before it is there. A lane whose turn
// it is waits only for copies that were issued: those need nobody else.
bool Pipeline::awaits_open(const Message& message, bool issued_only) const {
  if (message.reopen != kNone || flights_[message.flight].snapshot) return false;
  for (size_t i = 0; i < inbound_.size(); ++i) {
    const Flight& inbound = flights_[inbound_[i]];
    if (inbound.host.overlaps(message.host) && (inbound.ready || !issued_only)) return true;
  }
  return false;
}

// --- 4. and 5. publish

void Pipeline::handle_ready(FlightId id, Instant now) {
  stir(now);
  Flight& flight = flights_[id];
  SEALANE_CHECK(flight.in_use && !flight.ready, "a copy became ready twice");
  flight.ready = true;
  if (lanes_[flight.lane].early == id) lanes_[flight.lane].early = kNone;
  if (flight.direction == Direction::to_device) lanes_[flight.lane].eligible += flight.in_ring;
  if (flight.bypassed) lanes_[flight.lane].wake(lanes_[flight.lane].head());
}

bool Pipeline::advance(LaneState& lane, Instant now) {
  if (!lane.displaced.empty() || !lane.backlog.empty()) {
    make_room(lane);
    place(lane);
  }
  if (lane.paused || lane.under_way.full() || lane.eligible == 0) return false;
  Message& message = lane.at(lane.head());
  if (message.flight == kNone || !flights_[message.flight].ready) {
    uint64_t target = lane.head() + 1;
    while (lane.at(target).flight == kNone || !flights_[lane.at(target).flight].ready) ++target;
    SEALANE_CHECK(target < lane.frontier(), "lost an eligible message");
    return resolve(lane, target, now);
  }
  lane.hold_until.reset();
  if (message.state == MessageState::ready) {
    judge_worker(lane, message, now);
    publish(lane, message);
    return true;
  }
  if (message.state != MessageState::waiting) {
    if (!lane.waits_since) lane.waits_since = now;
    return false;
  }
  if (awaits_open(message, true)) return false;
  // No worker has begun. The lane seals it itself, unless it is still busy with the one before and
  // a worker is free.
  const bool worker_free = options_.policy.parallel && slots_pay_ && !options_.costs.split &&
                           sealing_.size() < sealers_ && sharing_.open(now);
  if (worker_free && !lane.under_way.empty()) return false;
  ++stats_.inline_sealed;
  publish(lane, message);
  return true;
}

// A record that a worker has made must still be sent. That pays if the lane did not have to wait
// for it: else it had better sealed the message itself.
void Pipeline::judge_worker(LaneState& lane, const Message& message, Instant now) {
  const Costs& costs = options_.costs;
  const uint64_t bytes = message.host.bytes;
  const Duration waited = now - lane.waits_since.value_or(now);
  lane.waits_since.reset();
  sharing_.earn(costs.live(bytes, 1) - costs.ready(bytes, 1) - waited);
}

// From here on the record is exposed: the ledger must know before the driver does.
void Pipeline::publish(LaneState& lane, Message& message) {
  const uint64_t position = lane.head();
  if (!lane.ledger.publish(std::move(*message.position))) return fail();
  Flight& flight = flights_[message.flight];
  lane.under_way.push({.position = position,
                       .flight = message.flight,
                       .slot = message.slot,
                       .reopen = message.reopen,
                       .host = message.host});
  actions_.push(Publish{.lane = lane.id,
                        .position = position,
                        .epoch = lane.ledger.epoch(),
                        .flight = message.flight,
                        .message = message.index,
                        .slot = message.slot,
                        .reopen = message.reopen,
                        .same_crossing = lane.last_flight == message.flight && message.index > 0,
                        .helpers = flight.unsealed > 0 ? helpers_ : options_.costs.helpers_most()});
  lane.last_flight = message.flight;
  --flight.in_ring;
  --lane.eligible;
  message = {};
}

// --- 6. done

void Pipeline::handle_published(LaneId id, uint64_t position, Instant now) {
  stir(now);
  LaneState& lane = lanes_[id];
  SEALANE_CHECK(!lane.under_way.empty() && lane.under_way.front().position == position,
                "the lane published out of order");
  const UnderWay done = lane.under_way.front();
  lane.under_way.pop();
  if (done.flight == kNone) return;
  if (done.slot != kNone) slots_.give(done.slot);
  if (done.reopen != kNone) void_slot(done.reopen, VoidReason::passed);
  Flight& flight = flights_[done.flight];
  if (done.slot == kNone && done.reopen == kNone) {
    --flight.unsealed;
    release_if_sealed(done.flight);
  }
  if (++flight.landed == flight.messages) finish(done.flight);
}

void Pipeline::finish(FlightId id) {
  if (lanes_[flights_[id].lane].last_flight == id) lanes_[flights_[id].lane].last_flight = kNone;
  flights_[id].in_use = false;
  flights_free_.push(id);
  actions_.push(Done{id});
}

// --- to the host

void Pipeline::handle_arrived(FlightId flight, uint32_t message, Instant) {
  ++opening_;
  actions_.push(Open{flight, message});
}

void Pipeline::handle_opened(FlightId id, uint32_t, bool verified, Instant) {
  --opening_;
  if (!verified) return fail();
  Flight& flight = flights_[id];
  if (++flight.landed < flight.messages) return;
  size_t i = 0;
  while (inbound_[i] != id) ++i;
  inbound_.erase(i);
  finish(id);
  bulk_lane().plan_due = true;  // a block just swapped out is the best guess for the next swap-in
}

// --- the driver asks

std::optional<Action> Pipeline::poll(Instant now) {
  if (quiet_from_ && now >= *quiet_from_) quiet_from_.reset();  // nobody waits for what has passed
  while (!failed_) {
    if (!actions_.empty()) {
      const Action action = actions_.front();
      actions_.pop();
      return action;
    }
    bool moved = false;
    for (LaneState& lane : lanes_) moved = advance(lane, now) || moved;
    if (moved || dispatch(now)) continue;
    LaneState& lane = bulk_lane();
    if (!options_.policy.speculates() || !std::exchange(lane.plan_due, false)) break;
    plan(lane, now);
  }
  return std::nullopt;
}

std::optional<Instant> Pipeline::deadline() const {
  std::optional<Instant> earliest = options_.costs.split ? quiet_from_ : std::nullopt;
  for (const LaneState& lane : lanes_) {
    if (lane.hold_until && (!earliest || *lane.hold_until < *earliest)) earliest = lane.hold_until;
  }
  return earliest;
}

GuardKind Pipeline::guard_of(const Range& host) const {
  for (const LaneState& lane : lanes_) {
    for (size_t i = 0; i < lane.planned.size(); ++i) {
      const Planned& planned = lane.planned[i];
      if (planned.guard != GuardKind::none && planned.host.overlaps(host)) return planned.guard;
    }
  }
  return GuardKind::none;
}

bool Pipeline::inbound(const Range& range) const {
  for (size_t i = 0; i < inbound_.size(); ++i) {
    if (flights_[inbound_[i]].host.overlaps(range)) return true;
  }
  return false;
}

bool Pipeline::sealing_from(const Range& range) const {
  for (size_t i = 0; i < sealing_.size(); ++i) {
    if (slots_[sealing_[i]].host.overlaps(range)) return true;
  }
  return false;
}

bool Pipeline::reading(const Range& range) const {
  if (sealing_from(range)) return true;
  for (const Flight& flight : flights_) {
    if (flight.in_use && !flight.snapshot && flight.host.overlaps(range)) return true;
  }
  return false;
}

bool Pipeline::waits_for_worker(LaneId id) const {
  const LaneState& lane = lanes_[id];
  if (lane.paused || lane.under_way.full() || lane.eligible == 0) return false;
  const Message& next = lane.at(lane.head());
  const bool busy = next.state == MessageState::sealing || next.state == MessageState::spoiled;
  return busy && next.flight != kNone && flights_[next.flight].ready;
}

uint32_t Pipeline::following(LaneId id) const {
  const LaneState& lane = lanes_[id];
  if (lane.under_way.empty()) return 0;
  const UnderWay& last = lane.under_way[lane.under_way.size() - 1];
  uint64_t expected = last.host.end();
  uint32_t count = 0;
  while (last.flight != kNone && count < Ledger::kWindow) {
    const Message& message = lane.at(lane.head() + count);
    if (message.flight != last.flight || message.host.address != expected) break;
    expected = message.host.end();
    ++count;
  }
  return count;
}

size_t Pipeline::memory_bytes() const {
  size_t total = sizeof *this + flights_.size() * sizeof(Flight) +
                 SlotPool::kSlotsMax * (sizeof(SlotPool::Slot) + 2 * sizeof(SlotId)) +
                 actions_.capacity() * sizeof(Action) + 2 * kFlightsMax * sizeof(FlightId);
  for (const LaneState& lane : lanes_) {
    total += sizeof lane + Ledger::kWindow * (sizeof(Message) + sizeof(Displaced)) +
             lane.planned.capacity() * sizeof(Planned) + kFlightsMax * sizeof(FlightId);
  }
  return total;
}

void Pipeline::handle_device_error() { fail(); }

void Pipeline::fail() { failed_ = true; }

}  // namespace sealane
