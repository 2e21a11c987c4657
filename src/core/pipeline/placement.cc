// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pipeline/placement.h"

namespace sealane {

Placement::Placement(LaneBooks& lane, bool early)
    : lane_(lane),
      early_pays_(early),
      displaced_(Ledger::kWindow),
      backlog_(LaneBooks::kFlightsMax) {}

bool Placement::may_place(FlightId id) const {
  const Flight& flight = lane_.flight(id);
  if (flight.ready || early_ == id) return true;
  return early_ == kNone && early_pays_ && !flight.bypassed;
}

uint64_t Placement::placeable() const {
  uint64_t messages = 0;
  for (size_t i = 0; i < displaced_.size(); ++i) {
    if (lane_.flight(displaced_[i].flight).ready) ++messages;
  }
  for (size_t i = 0; i < backlog_.size(); ++i) {
    const Flight& flight = lane_.flight(backlog_[i]);
    if (may_place(backlog_[i])) messages += flight.messages - flight.placed;
  }
  return messages;
}

void Placement::place() {
  for (size_t i = 0; i < displaced_.size();) {
    const Displaced lost = displaced_[i];
    if (!lane_.flight(lost.flight).ready) {
      ++i;
      continue;
    }
    if (!place_one(lost.flight, lost.index)) return;
    displaced_.erase(i);
  }
  for (size_t i = 0; i < backlog_.size();) {
    const FlightId id = backlog_[i];
    Flight& flight = lane_.flight(id);
    if (!may_place(id)) {
      ++i;
      continue;
    }
    if (!flight.ready) early_ = id;
    for (; flight.placed < flight.messages; ++flight.placed) {
      if (!place_one(id, flight.placed)) return;
    }
    backlog_.erase(i);
  }
}

bool Placement::place_one(FlightId id, uint32_t index) {
  Flight& flight = lane_.flight(id);
  const Range host = message_range(flight.host, index, flight.message_bytes);
  Message* message = lane_.reserve_lowest(host.bytes);
  if (message == nullptr) return false;
  message->flight = id;
  message->index = index;
  message->host = host;
  lane_.wake(message->position->number());
  ++flight.in_ring;
  if (flight.ready) ++lane_.eligible;
  return true;
}

uint64_t Placement::requested_end() {
  uint64_t end = lane_.frontier();
  while (end > lane_.head() && lane_.at(end - 1).flight == kNone &&
         lane_.at(end - 1).state != MessageState::orphaned) {
    --end;
  }
  uint64_t unplaced = displaced_.size();
  for (size_t i = 0; i < backlog_.size(); ++i) {
    const Flight& flight = lane_.flight(backlog_[i]);
    unplaced += flight.messages - flight.placed;
  }
  for (uint64_t position = lane_.head(); unplaced > 0 && position < end; ++position) {
    if (lane_.at(position).state == MessageState::hole) --unplaced;
  }
  return end + unplaced;
}

void Placement::displace(Message& message, VoidReason why) {
  Flight& flight = lane_.flight(message.flight);
  if (message.with_worker()) {
    lane_.slots.orphan(message.slot, why);
  } else if (message.state == MessageState::ready) {
    lane_.void_slot(message.slot, why);
  }
  ++lane_.stats.resealed;
  --flight.in_ring;
  if (flight.ready) --lane_.eligible;
  displaced_.push({.flight = message.flight, .index = message.index});
  message.state = MessageState::waiting;
  message.flight = kNone;
  message.slot = kNone;
}

void Placement::empty(uint64_t first, uint64_t end, VoidReason why) {
  for (uint64_t position = first; position < end; ++position) {
    Message& message = lane_.at(position);
    if (message.flight != kNone) displace(message, why);
    message = {};
  }
}

}  // namespace sealane
