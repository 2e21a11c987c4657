// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/sealers.h"

#include <algorithm>
#include <utility>

namespace sealane {
namespace {

// Messages with workers at a time: all share one, and another is about to begin.
constexpr uint32_t kSealers = 2;

}  // namespace

bool Sealers::begin_next(Instant now) {
  if (!plan_.slots_pay() || !lane_.worth_guessing) return false;
  if (sealing_.size() >= kSealers || !quiet(now)) return false;
  // While a message is on its way all workers share its sealing and its sending: what was requested
  // is sealed so when its turn comes.
  const bool busy = lane_.sending();
  if (!busy && sharing_.open(now) && begin_one(false, now)) return true;
  // A worker that has begun cannot be called back: guesses leave free what the lane needs to send
  // what was requested.
  const uint32_t spare = busy ? costs().spare_while_sending() : kSealers;
  return sealing_.size() < spare && begin_one(true, now);
}

// Workers share each message: they have time for others only between messages, if that is enough,
// or when the lane rests. A rest shows by its length: between two copies there is none.
bool Sealers::quiet(Instant now) const {
  if (costs().sealing_fits_between()) return true;
  return !lane_.sending() && (!quiet_from_ || now >= *quiet_from_);
}

bool Sealers::begin_one(bool ahead, Instant now) {
  lane_.seal_from = std::max(lane_.seal_from, lane_.head());
  bool first = true;
  for (uint64_t position = lane_.seal_from; position < lane_.frontier(); ++position) {
    const Message& message = lane_.at(position);
    if (message.state != MessageState::waiting) continue;
    if (std::exchange(first, false)) lane_.seal_from = position;
    if ((message.flight == kNone) != ahead || message.by_lane) continue;
    if (ahead && !plan_.time_to_guard(position)) return false;
    if (ahead || may_begin(message, now)) return begin(position);
  }
  return false;
}

// A requested message, before its turn.
bool Sealers::may_begin(const Message& message, Instant now) const {
  if (lane_.comes_in(message.host)) return false;  // it is not there yet
  const Flight& flight = lane_.flight(message.flight);
  return flight.ready || (!flight.bypassed && now >= flight.early_from);
}

bool Sealers::begin(uint64_t position) {
  Message& message = lane_.at(position);
  const bool ahead = message.flight == kNone;
  SlotId slot = lane_.slots.take(message.host, ahead, position);
  while (slot == kNone && !ahead && plan_.give_last(VoidReason::budget)) {
    slot = lane_.slots.take(message.host, ahead, position);
  }
  if (slot == kNone) return false;
  message.state = MessageState::sealing;
  message.slot = slot;
  sealing_.push(slot);
  if (ahead) {
    ++lane_.stats.sealed_ahead;
    plan_.guard(position);
  }
  lane_.actions.push(
      Seal{.slot = slot, .position = position, .host = message.host, .flight = message.flight});
  return true;
}

Message* Sealers::take(SlotId slot) {
  size_t i = 0;
  while (i < sealing_.size() && sealing_[i] != slot) ++i;
  SEALANE_CHECK(i < sealing_.size(), "sealed a slot nobody asked for");
  sealing_.erase(i);

  const SlotPool::Slot& had = lane_.slots[slot];
  Message& message = lane_.at(had.position);
  if (had.orphan) {
    lane_.void_slot(slot, had.why);
    if (message.state == MessageState::orphaned && message.slot == slot) lane_.give_back(message);
    return nullptr;
  }
  if (message.state == MessageState::spoiled) {
    lane_.void_slot(slot, VoidReason::stale);
    message.slot = kNone;
    message.state = message.flight == kNone ? MessageState::broken : MessageState::waiting;
    lane_.wake(had.position);
    return nullptr;
  }
  return &message;
}

void Sealers::handle_sealed(SlotId slot) {
  if (Message* const message = take(slot)) message->state = MessageState::ready;
}

void Sealers::handle_unsealed(SlotId slot) {
  Message* const message = take(slot);
  if (message == nullptr) return;
  lane_.void_slot(std::exchange(message->slot, kNone), VoidReason::budget);
  message->state = message->flight == kNone ? MessageState::broken : MessageState::waiting;
  message->by_lane = true;
}

// A record that a worker has made must still be sent. That pays if the lane did not have to wait
// for it: else it had better sealed the message itself.
void Sealers::handle_sent(const Message& message, Instant now) {
  const Duration waited = now - std::exchange(waits_since_, std::nullopt).value_or(now);
  const Duration gain = costs().gain(message.host.bytes, 1);
  sharing_.earn(gain - waited);
  // A guess that was begun too late keeps the very copy waiting that it was made for.
  const bool late = waited > Duration{0} && lane_.slots[message.slot].ahead;
  if (late) plan_.charge(waited - gain);
}

}  // namespace sealane
