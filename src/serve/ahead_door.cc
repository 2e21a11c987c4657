// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/ahead_door.h"

#include <new>

namespace sealane::serve {

// Of what goes to the device it must see all or nothing.
bool AheadDoor::handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant) {
  const bool inward = call.direction == Direction::to_device;
  std::optional<FlightId> flight;
  if (inward) {
    const uint64_t source = side == HostSide::snapshot ? call.ours : call.host.address;
    flight = ahead_.claim(call.host, reinterpret_cast<const void*>(source));
    if (!flight) ahead_.stop();
  } else {
    flight = ahead_.request_out(call.host);
  }
  if (!flight) return false;
  try {
    flights_[copy] = {*flight, inward};
    if (inward) inward_[*flight] = copy;
  } catch (const std::bad_alloc&) {
    flights_.erase(copy);
    ahead_.stop();
    return false;
  }
  return true;
}

void AheadDoor::handle_turn(CopyId copy, Instant) { ahead_.ready(flights_.at(copy).number); }

std::optional<WireTurn> AheadDoor::next_turn(Instant) {
  const auto turn = ahead_.next();
  if (!turn) return std::nullopt;
  turn_ = turn;
  if (turn->flight == kNone) return WireTurn{.pads = turn->messages};
  return WireTurn{.copy = inward_.at(turn->flight), .offset = turn->offset, .bytes = turn->bytes};
}

void AheadDoor::handle_over(CopyId copy, bool succeeded, Instant) {
  const auto found = flights_.find(copy);
  if (found == flights_.end()) return;
  const Flight flight = found->second;
  flights_.erase(found);
  if (!flight.inward) return ahead_.finish_out(flight.number, succeeded);
  // The number may be another copy's by now.
  const auto inward = inward_.find(flight.number);
  if (inward != inward_.end() && inward->second == copy) inward_.erase(inward);
  if (!succeeded) ahead_.stop();
}

}  // namespace sealane::serve
