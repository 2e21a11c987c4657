// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy is requested: what was sealed ahead for it is claimed, or it gets the next positions, and
// guesses make room for it.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/pipeline/pipeline.h"

namespace sealane {

FlightId Pipeline::handle_copy(const CopyRequest& copy, Instant now) {
  const FlightId id = take_flight(copy, now);
  source_.observe({copy.direction, copy.host});
  if (copy.direction == Direction::to_host) {
    take_back(id);
    return id;
  }
  ++stats_.requests;
  stats_.messages += flights_[id].messages;
  lane_.leeway.observe(std::exchange(lane_.extra, 0));
  lane_.plan_due = true;
  changing_.requested(copy.host);
  if (!claim(id)) {
    lane_.backlog.push(id);
    make_room();
    place();
  }
  return id;
}

// All workers share a message that may go, so there is no use in one of them having it already: the
// lane would wait for that one. A request is sealed early only if its stream keeps it waiting, and
// for longer than the lane's thread takes to learn that it does not.
FlightId Pipeline::take_flight(const CopyRequest& copy, Instant now) {
  SEALANE_CHECK(!full(), "more copies than the pipeline can carry");
  const FlightId id = flights_free_.front();
  flights_free_.pop();
  flights_[id] = {.host = copy.host,
                  .direction = copy.direction,
                  .in_use = true,
                  .leaves = copy.leaves,
                  .early_from = now + options_.costs.toll,
                  .message_bytes = message_bytes_,
                  .messages = message_count(copy.host.bytes, message_bytes_)};
  return id;
}

// A copy to the host is about to change its range: what was sealed from it is of no use.
void Pipeline::take_back(FlightId id) {
  inbound_.push(id);
  for (size_t i = lane_.planned.size(); i-- > 0;) {
    if (!lane_.planned[i].host.overlaps(flights_[id].host)) continue;
    void_planned(i, VoidReason::stale);
  }
}

// The program waits for us, or has promised to leave the source alone: nothing can change between
// this comparison and the claim.
bool Pipeline::claim(FlightId id) {
  Flight& flight = flights_[id];
  size_t found = 0;
  while (found < lane_.planned.size() && lane_.planned[found].host != flight.host) ++found;
  if (found == lane_.planned.size()) return false;

  const Planned planned = lane_.planned[found];
  lane_.planned.erase(found);
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
  if (intact) ++stats_.hits;
  stats_.messages_ready += ready;
  if (planned.guard != GuardKind::none) actions_.push(Unguard{planned.host});
  credit_hit(planned, ready, intact);
  return true;
}

// Trust grows with every transfer whose guard held: the first is sealed ahead alone.
void Pipeline::credit_hit(const Planned& planned, uint32_t ready, bool intact) {
  if (planned.guard == GuardKind::none) return;  // no worker had begun
  const Costs& costs = options_.costs;
  const uint64_t bytes = planned.host.bytes;
  account_.spend(costs.check(planned.guard == GuardKind::digest, bytes));
  const Duration gain = costs.live(bytes, planned.messages) - costs.ready(bytes, planned.messages);
  account_.earn(gain * ready / planned.messages);
  if (!intact) return;
  changing_.held(planned.host);
  lane_.depth_bytes = std::min(2 * std::max(lane_.depth_bytes, bytes), depth_max());
}

// Requested messages go before guesses: what stands where they must go is given up.
void Pipeline::make_room() {
  if (lane_.planned.empty()) return;
  const uint64_t needed = placeable();
  uint64_t room = 0;
  uint64_t position = lane_.head();
  while (room < needed && !lane_.planned.empty()) {
    while (position < lane_.planned.front().first) {
      if (lane_.at(position++).state == MessageState::hole) ++room;
    }
    if (room >= needed) return;
    void_planned(0, VoidReason::passed);
  }
}

// A request gets its positions when it may go. The one that will probably be next gets them at
// once, so that it is sealed while its stream still works.
bool Pipeline::may_place(FlightId id) const {
  const Flight& flight = flights_[id];
  if (flight.ready || lane_.early == id) return true;
  return lane_.early == kNone && slots_pay_ && !flight.bypassed;
}

uint64_t Pipeline::placeable() const {
  uint64_t messages = 0;
  for (size_t i = 0; i < lane_.displaced.size(); ++i) {
    if (flights_[lane_.displaced[i].flight].ready) ++messages;
  }
  for (size_t i = 0; i < lane_.backlog.size(); ++i) {
    const Flight& flight = flights_[lane_.backlog[i]];
    if (may_place(lane_.backlog[i])) messages += flight.messages - flight.placed;
  }
  return messages;
}

void Pipeline::place() {
  for (size_t i = 0; i < lane_.displaced.size();) {
    const Displaced lost = lane_.displaced[i];
    if (!flights_[lost.flight].ready) {
      ++i;
      continue;
    }
    if (!place_one(lost.flight, lost.index)) return;
    lane_.displaced.erase(i);
  }
  for (size_t i = 0; i < lane_.backlog.size();) {
    const FlightId id = lane_.backlog[i];
    Flight& flight = flights_[id];
    if (!may_place(id)) {
      ++i;
      continue;
    }
    if (!flight.ready) lane_.early = id;
    for (; flight.placed < flight.messages; ++flight.placed) {
      if (!place_one(id, flight.placed)) return;
    }
    lane_.backlog.erase(i);
  }
}

bool Pipeline::place_one(FlightId id, uint32_t index) {
  Flight& flight = flights_[id];
  const Range host = message_range(flight.host, index, flight.message_bytes);
  Message* message = lane_.reserve_lowest(host.bytes);
  if (message == nullptr) return false;
  message->state = MessageState::waiting;
  message->flight = id;
  message->index = index;
  message->host = host;
  lane_.wake(message->position->number());
  ++flight.in_ring;
  if (flight.ready) ++lane_.eligible;
  return true;
}

}  // namespace sealane
