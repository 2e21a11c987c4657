// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The door to whatever seals ahead for one copy thread (core/pipeline/speculator.h). Copies works
// without it; with it, bulk copies to the device travel on threads of their own, whose order on the
// wire is decided behind the door, because positions are planned there.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "core/copy/copy_call.h"

namespace sealane {

// What a copy thread hands to the driver next: a part of a copy, or messages that carry nothing.
struct WireTurn {
  CopyId copy = kNoCopy;  // kNoCopy: pads
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t pads = 0;
};

class Speculation {
 public:
  // A bulk copy, in either direction. False: carry it as any other. To the device: what was sealed
  // for it is claimed. Whoever drives has just looked at the guards of its source and told what was
  // written: nothing can change it before the copy is done, or there is a snapshot of it.
  virtual bool handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) = 0;
  // Its turn has come: nothing before it is left.
  virtual void handle_turn(CopyId copy, Instant now) = 0;
  // It has given up, for good: the thread carries what it has as any other.
  virtual bool stopped() const = 0;
  // What goes next, of the copies whose turn has come. Nothing: none may, or its slot is not ready.
  virtual std::optional<WireTurn> next_turn(Instant now) = 0;
  // The copy is over; to the host, with what result.
  virtual void handle_over(CopyId copy, bool succeeded, Instant now) = 0;
  // The range is going away. Afterwards nobody begins to read it; reads() says who still does.
  virtual void handle_freed(const Range& host) = 0;
  virtual bool reads(const Range& host) const = 0;

 protected:
  ~Speculation() = default;
};

}  // namespace sealane
