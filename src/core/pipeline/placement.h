// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which positions requested messages get. A request has its positions when it may go; the one that
// will probably be next has them at once, so that it is sealed while its stream still works. Who
// has lost a position gets the next before anybody else does.
//
// Events: add() a request, handle_ready, displace() whoever has to go. Action, into the books: a
// message at the lowest free position. Part of Pipeline; pure. It fails by waiting: when the ledger
// refuses a position, those that have none keep their order.
#pragma once

#include <cstdint>

#include "core/pipeline/lane_books.h"

namespace sealane {

class Placement {
 public:
  // `early`: whether anything is sealed before its turn.
  Placement(LaneBooks& lane, bool early);

  void add(FlightId flight) { backlog_.push(flight); }
  void handle_ready(FlightId flight) {
    if (early_ == flight) early_ = kNone;
  }
  bool waiting() const { return !displaced_.empty() || !backlog_.empty(); }
  uint64_t placeable() const;  // messages that place() would place
  void place();
  // One past the last position a requested message has, or will have: those without a position take
  // the lowest that are free.
  uint64_t requested_end();

  // A requested message loses its position; the caller decides what becomes of the position.
  void displace(Message& message, VoidReason why);
  // The positions are gone: whoever was there has none any more.
  void empty(uint64_t first, uint64_t end, VoidReason why);

 private:
  struct Displaced {
    FlightId flight = kNone;
    uint32_t index = 0;
  };

  bool may_place(FlightId id) const;
  bool place_one(FlightId id, uint32_t index);

  LaneBooks& lane_;
  const bool early_pays_;
  Ring<Displaced> displaced_;  // placed before anything of the backlog
  Ring<FlightId> backlog_;     // flights with messages that never had a position
  FlightId early_ = kNone;     // has positions though it may not go yet
};

}  // namespace sealane
