// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One copy between host and device, as the program asked for it. Everything else refers to it by
// its id. Handles of the driver are numbers here, compared and never followed.
#pragma once

#include <cstdint>
#include <optional>

#include "core/copy.h"

namespace sealane {

using CopyId = uint64_t;  // from 1, never used twice
constexpr CopyId kNoCopy = 0;
using StreamKey = uint64_t;
using ContextKey = uint64_t;
using EventKey = uint64_t;  // marks a place in a stream; from 1
using ErrorCode = int;      // of the driver; 0 is success

// What the program's side of a copy is.
enum class HostKind : uint8_t {
  pageable,    // a source may change as soon as the call returns, a destination is full by then
  pinned,      // the program leaves it alone from the copy's turn until the copy is done
  registered,  // the same, but the program may unmap it when the copy is done, or in error before
};

// When its bytes are read or written.
enum class HostSide : uint8_t {
  in_place,  // where they are, from the copy's turn until it is done
  snapshot,  // a source: into memory of ours, while the call is being made
  at_turn,   // through memory of ours: read when the turn comes, written before the gate opens
};

struct CopyCall {
  Direction direction = Direction::to_device;
  StreamKey stream = 0;
  ContextKey context = 0;  // of the stream
  uint32_t device = 0;
  uint64_t device_address = 0;
  Range host;
  HostKind memory = HostKind::pageable;
  bool legacy = false;      // the stream is the one that others wait for, and that waits for them
  bool read_now = false;    // the source must not be looked at after the call
  bool unseen = false;      // others than the CPU may write the memory
  bool alone = false;       // when it was asked for no bulk copy was under way: filled in by Copies
  uint64_t host_block = 0;  // where the allocations begin that they lie in, as far as
  uint64_t device_block = 0;  // it is known: no copy of the driver's reaches into two
  uint64_t ours = 0;          // where memory of ours holds its bytes, if it is known already

  // Where its bytes are read or written while it crosses.
  Range place() const { return {ours != 0 ? ours : host.address, host.bytes}; }

  Range device_range() const { return {device_address, host.bytes}; }
};

// When the bytes of a copy are read or written if it is carried. Nothing: the call has to wait for
// it, which the driver does better.
inline std::optional<HostSide> host_side_of(const CopyCall& call) {
  const bool inward = call.direction == Direction::to_device;
  if (!call.read_now && call.memory == HostKind::pinned) return HostSide::in_place;
  if (!call.read_now && call.memory == HostKind::registered) return HostSide::at_turn;
  return inward ? std::optional(HostSide::snapshot) : std::nullopt;
}

// Does a copy read what an earlier one of its stream writes? The program may have mapped registered
// memory at several places. `side`: of the later one; a snapshot has been read already.
inline bool reads_what(const CopyCall& later, HostSide side, const CopyCall& earlier) {
  if (later.direction == earlier.direction) return false;
  if (later.direction == Direction::to_host) {
    return later.device_range().overlaps(earlier.device_range());
  }
  if (side == HostSide::snapshot) return false;
  const bool both_registered =
      later.memory == HostKind::registered && earlier.memory == HostKind::registered;
  return both_registered || later.host.overlaps(earlier.host);
}

}  // namespace sealane
