// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The life of a copy to the device, in order:
//
//   1. handle_copy    serial    claim what was sealed ahead, or reserve the next positions
//                               (pipeline_request.cc)
//   2. plan           serial    ask what comes next, reserve positions and guard it
//                               (pipeline_plan.cc)
//   3. dispatch       serial    give messages to workers: requested ones first, then by position
//      handle_sealed  parallel  any number of workers seal, in any order
//   4. handle_ready   serial    nothing before it in its stream is left
//   5. advance        serial    the message whose turn it is goes out; if somebody else's turn
//                               comes first: hold, pad, or move to the front (pipeline_gaps.cc)
//   6. handle_published         the device has it; the last message ends the flight
//
// A copy to the host is observed (1), carried by others (handle_arrived), and its range becomes a
// candidate for 2.

#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sealane {
namespace {

// Messages with workers at a time: all share one, and another is about to begin.
constexpr uint32_t kSealers = 2;

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, GuessSource& source)
    : options_(options),
      source_(source),
      lane_(options.key_limits, kFlightsMax),
      slots_(options.slot_bytes_max, options.rules.budget),
      flights_(kFlightsMax),
      flights_free_(kFlightsMax),
      inbound_(kFlightsMax),
      sealing_(SlotPool::kSlotsMax),
      actions_(4 * Ledger::kWindow),
      slots_pay_(options.policy.forced() || options.costs.slots_pay()) {
  if (!options.policy.by_cost) lane_.depth_bytes = depth_max();  // the paper has no such limit
  for (FlightId id = 0; id < kFlightsMax; ++id) flights_free_.push(id);
}

// --- 3. seal

bool Pipeline::dispatch(Instant now) {
  if (!slots_pay_ || sealing_.size() >= kSealers || !quiet(now)) return false;
  // While a message is on its way all workers share its sealing and its sending: what was requested
  // is sealed so when its turn comes.
  const bool busy = sending();
  if (!busy && sharing_.open(now) && dispatch_from(false, now)) return true;
  // A worker that has begun cannot be called back: guesses leave free what the lane needs to send
  // what was requested.
  const uint32_t spare = busy ? options_.costs.spare_while_sending() : kSealers;
  return sealing_.size() < spare && dispatch_from(true, now);
}

// Workers share each message: they have time for others only between messages, if that is enough,
// or when the lane rests. A rest shows by its length: between two copies there is none.
bool Pipeline::quiet(Instant now) const {
  if (options_.costs.sealing_fits_between()) return true;
  return !sending() && (!quiet_from_ || now >= *quiet_from_);
}

void Pipeline::stir(Instant now) { quiet_from_ = now + options_.costs.seal(message_bytes_); }

bool Pipeline::dispatch_from(bool ahead, Instant now) {
  lane_.seal_from = std::max(lane_.seal_from, lane_.head());
  bool first = true;
  for (uint64_t position = lane_.seal_from; position < lane_.frontier(); ++position) {
    const Message& message = lane_.at(position);
    if (message.state != MessageState::waiting) continue;
    if (std::exchange(first, false)) lane_.seal_from = position;
    if ((message.flight == kNone) != ahead || message.by_lane) continue;
    if (ahead && !time_to_guard(position)) return false;
    if (!ahead && inbound(message.host)) continue;  // it is not there yet
    if (!ahead && !flights_[message.flight].ready) {
      const Flight& flight = flights_[message.flight];
      if (flight.bypassed || now < flight.early_from) continue;
    }
    return seal(position);
  }
  return false;
}

bool Pipeline::seal(uint64_t position) {
  Message& message = lane_.at(position);
  const bool ahead = message.flight == kNone;
  SlotId slot = slots_.take(message.host, ahead, position);
  while (slot == kNone && !ahead && !lane_.planned.empty()) {
    void_planned(lane_.planned.size() - 1, VoidReason::budget);  // needed last
    slot = slots_.take(message.host, ahead, position);
  }
  if (slot == kNone) return false;
  message.state = MessageState::sealing;
  message.slot = slot;
  sealing_.push(slot);
  if (ahead) {
    ++stats_.sealed_ahead;
    guard_planned(position);
  }
  actions_.push(
      Seal{.slot = slot, .position = position, .host = message.host, .flight = message.flight});
  return true;
}

// What the worker had. Nothing: nobody wants it any more, or it has to be sealed again.
Message* Pipeline::take_from_worker(SlotId slot) {
  size_t i = 0;
  while (i < sealing_.size() && sealing_[i] != slot) ++i;
  SEALANE_CHECK(i < sealing_.size(), "sealed a slot nobody asked for");
  sealing_.erase(i);

  Message& message = lane_.at(slots_[slot].position);
  if (slots_[slot].orphan) {
    void_slot(slot, slots_[slot].why);
    if (message.state == MessageState::orphaned && message.slot == slot) lane_.give_back(message);
    return nullptr;
  }
  if (message.state == MessageState::spoiled) {
    void_slot(slot, VoidReason::stale);
    message.slot = kNone;
    message.state = message.flight == kNone ? MessageState::broken : MessageState::waiting;
    lane_.wake(slots_[slot].position);
    return nullptr;
  }
  return &message;
}

void Pipeline::handle_sealed(SlotId slot, Instant) {
  if (Message* const message = take_from_worker(slot)) message->state = MessageState::ready;
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
  lane_.depth_bytes = std::min(lane_.depth_bytes, depth_max());
}

// --- 4. and 5. publish

void Pipeline::handle_ready(FlightId id, Instant now) {
  stir(now);
  Flight& flight = flights_[id];
  SEALANE_CHECK(flight.in_use && !flight.ready, "a copy became ready twice");
  flight.ready = true;
  if (lane_.early == id) lane_.early = kNone;
  lane_.eligible += flight.in_ring;
  if (flight.bypassed) lane_.wake(lane_.head());
}

bool Pipeline::advance(Instant now) {
  if (!lane_.displaced.empty() || !lane_.backlog.empty()) {
    make_room();
    place();
  }
  if (lane_.under_way || lane_.eligible == 0) return false;
  Message& message = lane_.at(lane_.head());
  if (message.flight == kNone || !flights_[message.flight].ready) {
    uint64_t target = lane_.head() + 1;
    while (lane_.at(target).flight == kNone || !flights_[lane_.at(target).flight].ready) ++target;
    SEALANE_CHECK(target < lane_.frontier(), "lost an eligible message");
    return resolve(target, now);
  }
  lane_.hold_until.reset();
  if (message.state == MessageState::ready) {
    judge_worker(message, now);
  } else if (message.state != MessageState::waiting) {
    if (!lane_.waits_since) lane_.waits_since = now;
    return false;
  }
  publish(message);  // no worker has begun: the lane seals it itself, with all of them
  return true;
}

// A record that a worker has made must still be sent. That pays if the lane did not have to wait
// for it: else it had better sealed the message itself.
void Pipeline::judge_worker(const Message& message, Instant now) {
  const Costs& costs = options_.costs;
  const uint64_t bytes = message.host.bytes;
  const Duration waited = now - lane_.waits_since.value_or(now);
  lane_.waits_since.reset();
  sharing_.earn(costs.live(bytes, 1) - costs.ready(bytes, 1) - waited);
}

// From here on the record is exposed: the ledger must know before the driver does.
void Pipeline::publish(Message& message) {
  const uint64_t position = lane_.head();
  if (!lane_.ledger.publish(std::move(*message.position))) return fail();
  lane_.under_way = {
      .position = position, .flight = message.flight, .slot = message.slot, .host = message.host};
  actions_.push(Publish{.position = position,
                        .flight = message.flight,
                        .message = message.index,
                        .slot = message.slot});
  --flights_[message.flight].in_ring;
  --lane_.eligible;
  message = {};
}

// --- 6. done

void Pipeline::handle_published(uint64_t position, Instant now) {
  stir(now);
  SEALANE_CHECK(lane_.under_way && lane_.under_way->position == position,
                "the lane published out of order");
  const UnderWay done = *std::exchange(lane_.under_way, std::nullopt);
  if (done.flight == kNone) return;
  if (done.slot != kNone) slots_.give(done.slot);
  Flight& flight = flights_[done.flight];
  if (++flight.sent == flight.messages) finish(done.flight);
}

void Pipeline::finish(FlightId id) {
  flights_[id].in_use = false;
  flights_free_.push(id);
}

void Pipeline::handle_arrived(FlightId id) {
  size_t i = 0;
  while (inbound_[i] != id) ++i;
  inbound_.erase(i);
  finish(id);
  lane_.plan_due = true;  // a block just swapped out is the best guess for the next swap-in
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
    if (advance(now) || dispatch(now)) continue;
    if (!std::exchange(lane_.plan_due, false)) break;
    plan(now);
  }
  return std::nullopt;
}

std::optional<Instant> Pipeline::deadline() const {
  const auto& hold = lane_.hold_until;
  if (!hold || !quiet_from_) return hold ? hold : quiet_from_;
  return std::min(*hold, *quiet_from_);
}

GuardKind Pipeline::guard_of(const Range& host) const {
  for (size_t i = 0; i < lane_.planned.size(); ++i) {
    const Planned& planned = lane_.planned[i];
    if (planned.guard != GuardKind::none && planned.host.overlaps(host)) return planned.guard;
  }
  return GuardKind::none;
}

// A copy to the host is going to write here: what is there now must not be sealed.
bool Pipeline::inbound(const Range& range) const {
  for (size_t i = 0; i < inbound_.size(); ++i) {
    if (flights_[inbound_[i]].host.overlaps(range)) return true;
  }
  return false;
}

bool Pipeline::waits_for_worker() const {
  if (lane_.under_way || lane_.eligible == 0) return false;
  const Message& next = lane_.at(lane_.head());
  const bool busy = next.state == MessageState::sealing || next.state == MessageState::spoiled;
  return busy && next.flight != kNone && flights_[next.flight].ready;
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

size_t Pipeline::memory_bytes() const {
  return sizeof *this + flights_.size() * sizeof(Flight) +
         SlotPool::kSlotsMax * (sizeof(SlotPool::Slot) + 2 * sizeof(SlotId)) +
         actions_.capacity() * sizeof(Action) + 3 * kFlightsMax * sizeof(FlightId) +
         Ledger::kWindow * (sizeof(Message) + sizeof(Displaced)) +
         lane_.planned.capacity() * sizeof(Planned);
}

}  // namespace sealane
