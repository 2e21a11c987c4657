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
  const FlightId id = take_flight(copy);
  Flight& flight = flights_[id];
  flight.early_from = early_from(copy, now);
  if (is_bulk(flight) && source_ != nullptr) source_->observe({copy.direction, copy.host});
  if (copy.direction == Direction::to_host) {
    take_back(id, now);
    return id;
  }
  LaneState& lane = lanes_[copy.lane];
  lane.synchronised = false;
  if (!is_bulk(flight)) {
    lane.extra += flight.messages;
  } else {
    ++stats_.requests;
    stats_.messages += flight.messages;
    lane.leeway.observe(std::exchange(lane.extra, 0));
    lane.plan_due = true;
    changing_.requested(copy.host);
  }
  if (!is_bulk(flight) || !claim(id)) {
    lane.backlog.push(id);
    make_room(lane);
    place(lane);
  }
  release_if_sealed(id);
  return id;
}

FlightId Pipeline::take_flight(const CopyRequest& copy) {
  SEALANE_CHECK(!full(), "more copies than the pipeline can carry");
  SEALANE_CHECK(copy.lane < lanes_.size(), "no such lane");
  const FlightId id = flights_free_.front();
  flights_free_.pop();
  Flight& flight = flights_[id];
  flight = {};
  flight.host = copy.host;
  flight.direction = copy.direction;
  flight.memory = copy.memory;
  flight.lane = copy.lane;
  flight.snapshot = copy.snapshot;
  flight.ready = copy.ready;
  flight.leaves = copy.leaves;
  flight.in_use = true;
  flight.message_bytes = message_bytes_;
  flight.messages = message_count(copy.host.bytes, message_bytes_);
  flight.unsealed = flight.messages;
  return id;
}

// Where all workers share a message that may go there is no use in one of them having it already:
// the lane would wait for that one. So a request is sealed early only if its stream keeps it
// waiting, and for longer than the lane's thread takes to learn that it does not.
Instant Pipeline::early_from(const CopyRequest& copy, Instant now) const {
  const bool stays = copy.snapshot || copy.memory == MemoryKind::pinned;
  return options_.costs.split && stays ? now + options_.costs.toll : now;
}

// A copy to the host is about to change its range: what was sealed from it is of no use.
void Pipeline::take_back(FlightId id, Instant) {
  inbound_.push(id);
  LaneState& lane = bulk_lane();
  for (size_t i = lane.planned.size(); i-- > 0;) {
    if (!lane.planned[i].host.overlaps(flights_[id].host)) continue;
    void_planned(lane, i, VoidReason::stale);
  }
}

// The program waits for us, or has promised to leave the source alone: nothing can change between
// this comparison and the claim.
bool Pipeline::claim(FlightId id) {
  Flight& flight = flights_[id];
  LaneState& lane = lanes_[flight.lane];
  size_t found = 0;
  while (found < lane.planned.size() && lane.planned[found].host != flight.host) ++found;
  if (found == lane.planned.size()) return false;

  const Planned planned = lane.planned[found];
  lane.planned.erase(found);
  uint32_t ready = 0;
  bool intact = true;
  for (uint32_t i = 0; i < planned.messages; ++i) {
    Message& message = lane.at(planned.first + i);
    message.flight = id;
    message.index = i;
    intact =
        intact && message.state != MessageState::broken && message.state != MessageState::spoiled;
    // What a worker has not read yet may be changed before it does.
    if (flight.leaves && message.state == MessageState::sealing) {
      message.state = MessageState::spoiled;
    }
    if (message.state == MessageState::broken) message.state = MessageState::waiting;
    if (message.state == MessageState::waiting) lane.wake(planned.first + i);
    if (message.state == MessageState::ready) ++ready;
  }
  flight.placed = flight.in_ring = planned.messages;
  flight.unsealed -= ready;
  if (flight.ready) lane.eligible += planned.messages;
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
  LaneState& lane = bulk_lane();
  lane.depth_bytes = std::min(2 * std::max(lane.depth_bytes, bytes), depth_max());
}

// Requested messages go before guesses: what stands where they must go is given up.
void Pipeline::make_room(LaneState& lane) {
  if (lane.planned.empty()) return;
  const uint64_t needed = placeable(lane);
  uint64_t room = 0;
  uint64_t position = lane.head();
  while (room < needed && !lane.planned.empty()) {
    while (position < lane.planned.front().first) {
      if (lane.at(position++).state == MessageState::hole) ++room;
    }
    if (room >= needed) return;
    void_planned(lane, 0, VoidReason::passed);
  }
}

// A request gets its positions when it may go. The one that will probably be next gets them at
// once, so that it is sealed while its stream still works.
bool Pipeline::may_place(const LaneState& lane, FlightId id) const {
  const Flight& flight = flights_[id];
  if (flight.ready || lane.early == id) return true;
  return lane.early == kNone && slots_pay_ && !flight.bypassed;
}

uint64_t Pipeline::placeable(const LaneState& lane) const {
  uint64_t messages = 0;
  for (size_t i = 0; i < lane.displaced.size(); ++i) {
    if (flights_[lane.displaced[i].flight].ready) ++messages;
  }
  for (size_t i = 0; i < lane.backlog.size(); ++i) {
    const Flight& flight = flights_[lane.backlog[i]];
    if (may_place(lane, lane.backlog[i])) messages += flight.messages - flight.placed;
  }
  return messages;
}

void Pipeline::place(LaneState& lane) {
  for (size_t i = 0; i < lane.displaced.size();) {
    const Displaced lost = lane.displaced[i];
    if (!flights_[lost.flight].ready) {
      ++i;
      continue;
    }
    Message* message = place_one(lane, lost.flight, lost.index);
    if (message == nullptr) return;
    message->reopen = lost.reopen;
    lane.displaced.erase(i);
  }
  for (size_t i = 0; i < lane.backlog.size();) {
    const FlightId id = lane.backlog[i];
    Flight& flight = flights_[id];
    if (!may_place(lane, id)) {
      ++i;
      continue;
    }
    if (!flight.ready) lane.early = id;
    for (; flight.placed < flight.messages; ++flight.placed) {
      if (place_one(lane, id, flight.placed) == nullptr) return;
    }
    lane.backlog.erase(i);
  }
}

Message* Pipeline::place_one(LaneState& lane, FlightId id, uint32_t index) {
  Flight& flight = flights_[id];
  const Range host = message_range(flight.host, index, flight.message_bytes);
  Message* message = lane.reserve_lowest(host.bytes);
  if (message == nullptr) return nullptr;
  message->state = MessageState::waiting;
  message->flight = id;
  message->index = index;
  message->host = host;
  lane.wake(message->position->number());
  ++flight.in_ring;
  if (flight.ready) ++lane.eligible;
  return message;
}

// A pinned source may be read until the copy is done. Any other may change as soon as the call
// returns: the sealed records are the copy from then on.
void Pipeline::release_if_sealed(FlightId id) {
  Flight& flight = flights_[id];
  if (flight.released) return;
  const bool stable = flight.snapshot || flight.memory == MemoryKind::pinned;
  if (!stable && flight.unsealed > 0) return;
  flight.released = true;
  actions_.push(Release{id});
}

void Pipeline::handle_synchronise(Instant) {
  for (LaneState& lane : lanes_) lane.synchronised = true;
}

}  // namespace sealane
