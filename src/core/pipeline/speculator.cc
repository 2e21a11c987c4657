// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/speculator.h"

#include <algorithm>
#include <utility>

#include "core/pipeline/outlook.h"

namespace sealane {
namespace {

constexpr Duration kShortFor{250'000'000};

}  // namespace

Speculator::Speculator(const PipelineOptions& options, GuessSource& source)
    : pipeline_(options, source),
      only_waited_(options.policy.where_it_pays &&
                   !speculation_outlook(options.costs, !options.page_guards).pays()),
      copies_(Pipeline::kFlightsMax) {
  pipeline_.handle_worth(!only_waited_);
}

// --- 1. and 2.

// Of what goes to the device it must see all or nothing.
bool Speculator::handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) {
  if (stopped_) return false;
  const bool inward = call.direction == Direction::to_device;
  if (pipeline_.full()) {
    if (inward) stop();
    return false;
  }
  if (inward && only_waited_) observe_waiting(call, now);
  Asked& asked = asked_[copy];
  asked.flight = pipeline_.handle_copy(
      {.direction = call.direction, .host = call.host, .leaves = side == HostSide::snapshot}, now);
  asked.place = call.place();
  asked.inward = inward;
  copies_[asked.flight] = copy;
  return true;
}

void Speculator::observe_waiting(const CopyCall& call, Instant now) {
  const PipelineOptions& options = pipeline_.options();
  const uint64_t bytes = call.host.bytes;
  const uint32_t messages = message_count(bytes, pipeline_.message_bytes());
  const Duration saved = options.costs.saved_waiting(bytes, messages, !options.page_guards);
  waited_.observe(call.alone ? saved : Duration{0}, now);
  pipeline_.handle_worth(waited_.pay());
}

// What is expected behind it is begun while the lane still rests.
void Speculator::handle_turn(CopyId copy, Instant now) {
  pump(now);
  if (!stopped_) pipeline_.handle_ready(asked_.at(copy).flight, now);
}

// To the device the last message has ended it already.
void Speculator::handle_over(CopyId copy, bool succeeded, Instant) {
  const auto found = asked_.find(copy);
  if (found == asked_.end()) return;
  const Asked over = found->second;
  asked_.erase(found);
  if (!succeeded) stop();
  if (!stopped_ && !over.inward) pipeline_.handle_arrived(over.flight);
}

// --- 3. the crossing

bool Speculator::has_turn(Instant now) {
  pump(now);
  return !stopped_ && !turns_.empty();
}

std::optional<WireTurn> Speculator::next_turn(Instant now) {
  if (!has_turn(now)) return std::nullopt;
  const auto front = turns_.front();
  turns_.pop_front();
  if (const Pad* pad = std::get_if<Pad>(&front)) {
    first_position_ = pad->position;
    messages_.end();
    return turn_ = WireTurn{.pads = pad->count};
  }
  publication_ = std::get<Publish>(front);
  first_position_ = publication_->position;
  const FlightId flight = publication_->flight;
  const uint64_t size = pipeline_.message_bytes_of(flight);
  const uint64_t messages = 1 + pipeline_.following();
  const Asked& asked = asked_.at(copies_[flight]);
  WireTurn turn{.copy = copies_[flight], .offset = publication_->message * size};
  turn.bytes = std::min(messages * size, asked.place.bytes - turn.offset);
  messages_.begin({asked.place.address + turn.offset, turn.bytes}, size);
  return turn_ = turn;
}

// The message whose turn it is, once the core has given it its turn.
bool Speculator::take_publication(Instant now) {
  if (publication_) return true;
  if (!has_turn(now)) return false;
  const Publish* next = std::get_if<Publish>(&turns_.front());
  const bool mine =
      next != nullptr && copies_[next->flight] == turn_->copy &&
      next->message * pipeline_.message_bytes_of(next->flight) == turn_->offset + messages_.start();
  if (!mine) {
    stop();  // following() promised it: the books are wrong
    return false;
  }
  publication_ = *next;
  turns_.pop_front();
  return true;
}

Verdict Speculator::answer(const SeenMessage& message, Instant now) {
  using Kind = Verdict::Kind;
  const SafetyRules& rules = pipeline_.options().rules;
  const bool begun = answering_ && *answering_ == message.iv;
  if (stopped_ && begun) handle_answered(message.iv, false, 0, now);
  if (stopped_ || !turn_ || (answering_ && !begun)) return {};
  const MessageOwner owner = messages_.owner_of(message.piece, rules);
  if (owner == MessageOwner::driver) return {};
  if (!take_publication(now)) return {stopped_ ? Kind::drivers : Kind::wait};
  const bool placed = owner == MessageOwner::copy;
  hides_places_ = hides_places_ || !placed;
  first_ = messages_.done() == 0 && placed;
  const SlotId slot = publication_->slot;
  if (slot != kNone && !placed) {
    // One of the driver's own must not carry a byte of the program's.
    const bool as_long = slots_[slot].host.bytes == message.piece.bytes;
    if (!as_long || !message.same.value_or(true)) {
      answering_.reset();
      return {};
    }
    answering_ = message.iv;  // until it is compared
    if (!message.same) return {Kind::compare, slot};
  }
  answering_ = message.iv;
  if (slot == kNone) return {Kind::seal_now};
  if (fits(message)) return {Kind::from_slot, slot, slots_.ahead(slot)};
  // It is going to be sealed again, perhaps under the same IV.
  if (rules.iv_once) slots_.drop(std::exchange(publication_->slot, kNone), false);
  return {Kind::seal_now, slot};
}

bool Speculator::fits(const SeenMessage& message) const {
  const SafetyRules& rules = pipeline_.options().rules;
  const SealSlot& slot = slots_[publication_->slot];
  const bool same_key = slot.key == message.key;
  if ((!same_key || counter_.lost()) && rules.rotation) return false;
  const bool same_iv = slot.iv == message.iv || !rules.message_match || !same_key;
  return slots_.sealed(publication_->slot) && same_iv && message.piece.bytes <= slot.host.bytes;
}

void Speculator::handle_answered(const Iv& iv, bool exposed, uint64_t bytes, Instant now) {
  if (!answering_ || *answering_ != iv) return;
  answering_.reset();
  if (stopped_) return drop_published(exposed);
  if (first_) message_size_.observe(bytes, turn_->bytes);
  if (exposed) ++stats_.answered;
  if (exposed && slots_.ahead(publication_->slot)) ++stats_.answered_ahead;
  pass_message(exposed, bytes, now);
}

// The message is the driver's now.
void Speculator::pass_message(bool exposed, uint64_t bytes, Instant now) {
  const uint64_t position = publication_->position;
  drop_published(exposed);
  pipeline_.handle_published(position, now);
  messages_.advance(bytes);
}

void Speculator::drop_published(bool exposed) {
  const SlotId slot = std::exchange(publication_, std::nullopt)->slot;
  if (slot != kNone) slots_.drop(slot, exposed);
}

// Nothing is given to the workers yet: the thread is about to ask for the next copy if there is
// one, and would wait for whoever has just begun to arm the guard of that very range.
bool Speculator::end_crossing(bool succeeded, Instant now) {
  const bool lent = answering_ && publication_->slot != kNone;
  if (!succeeded || lent) stop();  // a slot that is being sent stays until that is over
  if (!lent) answering_.reset();
  if (turn_->pads > 0 && !stopped_) {
    pipeline_.handle_published(first_position_ + turn_->pads - 1, now);
  }
  while (!stopped_ && !messages_.over()) {
    if (take_publication(now)) {
      pass_message(false, messages_.length(), now);
    } else if (!stopped_) {
      return false;
    }
  }
  turn_.reset();
  messages_.end();
  if (publication_ && !lent) drop_published(false);
  if (!stopped_) reconcile();
  return true;
}

// The driver's counter is what counts, and what it has shown of its messages.
void Speculator::reconcile() {
  const uint64_t head = pipeline_.lane().head();
  if (counter_.lost() || !counter_.started() || counter_.next() < head) {
    pipeline_.handle_rotated();
    counter_.restart(pipeline_.lane().head());
  } else if (counter_.next() > head) {
    pipeline_.handle_consumed(counter_.next());
  }
  if (message_size_.bytes() != pipeline_.message_bytes()) {
    pipeline_.handle_message_bytes(message_size_.bytes());
  }
}

// --- 4. workers and guards

std::optional<SealAction> Speculator::poll(Instant now) {
  pump(now);
  return slots_.take();
}

// Not between the last message of a crossing and its end: counters are compared first, and nothing
// new may be on its way then.
void Speculator::pump(Instant now) {
  if (turn_ && turn_->pads == 0 && messages_.over()) return;
  if (short_until_ && now >= *short_until_) {
    short_until_.reset();
    pipeline_.handle_room(pipeline_.options().slot_bytes_max);
  }
  while (!stopped_) {
    const auto action = pipeline_.poll(now);
    if (!action) break;
    if (const Seal* seal = std::get_if<Seal>(&*action)) {
      begin_sealing(*seal);
    } else if (const Publish* publish = std::get_if<Publish>(&*action)) {
      turns_.emplace_back(*publish);
    } else if (const Pad* pad = std::get_if<Pad>(&*action)) {
      turns_.emplace_back(*pad);
    } else if (const Void* gone = std::get_if<Void>(&*action)) {
      slots_.drop(gone->slot, false);
    } else if (const Guard* guard = std::get_if<Guard>(&*action)) {
      slots_.guard(*guard);
    } else if (const Unguard* unguard = std::get_if<Unguard>(&*action)) {
      slots_.unguard(*unguard);
    }
  }
  if (pipeline_.failed()) stop();
}

// Before the channel's first message nobody knows its key.
void Speculator::begin_sealing(const Seal& seal) {
  if (!counter_.started()) return pipeline_.handle_unsealed(seal.slot);
  SealSlot what{seal.slot,    seal.host,      seal.host,
                kNoCopy,      counter_.key(), counter_.iv_of(seal.position),
                hides_places_};
  if (seal.flight != kNone) {
    what.copy = copies_[seal.flight];
    const Range& whole = pipeline_.host_of(seal.flight);
    what.from.address = asked_.at(what.copy).place.address + (seal.host.address - whole.address);
  }
  slots_.begin(what);
}

void Speculator::handle_sealed(SlotId id, Sealed how, Instant now) {
  slots_.end(id, how == Sealed::whole);
  if (stopped_) return slots_.drop(id, false);
  if (how == Sealed::whole) {
    pipeline_.handle_sealed(id);
  } else {
    pipeline_.handle_unsealed(id);
  }
  if (how != Sealed::no_room) return;
  // Others have the memory. What there is now must do, for a while.
  pipeline_.handle_room(pipeline_.slots().bytes());
  short_until_ = now + kShortFor;
}

void Speculator::stop() {
  if (std::exchange(stopped_, true)) return;
  turns_.clear();
  slots_.drop_all(publication_ && answering_ ? publication_->slot : kNone);
}

}  // namespace sealane
