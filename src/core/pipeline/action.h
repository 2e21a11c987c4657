// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pipeline asks its driver to do. Plain values, carried out in the order they are polled:
// an action takes effect before the next one is polled, work that takes time (Seal, Publish, Pad,
// Open) is started and reported back by a handle_*() event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/time.h"
#include "core/copy.h"
#include "core/lane/position.h"

namespace sealane {

using LaneId = uint8_t;
using SlotId = uint32_t;    // private memory for one record
using FlightId = uint32_t;  // a copy that was requested and is not done

constexpr uint32_t kNone = UINT32_MAX;

enum class GuardKind : uint8_t {
  none,
  page,    // the pages are write-protected; checking costs next to nothing
  digest,  // a keyed digest of what was sealed is compared with the range at the request
};

// Why a slot was wiped without being published.
enum class VoidReason : uint8_t {
  stale,       // what it was sealed from has changed, or is about to
  passed,      // its position went by, or was needed for somebody else
  rotated,     // its key is gone
  budget,      // its memory was needed for a copy that was requested, or not to be had
  unforeseen,  // the predictor thinks otherwise now
  freed,       // what it was sealed from is gone
  costly,      // to guard what it was sealed from costs more than it brings
};
constexpr size_t kVoidReasons = static_cast<size_t>(VoidReason::costly) + 1;
std::string_view to_string(VoidReason reason);

// A worker seals one message into a slot. Report: handle_sealed(slot).
struct Seal {
  SlotId slot;
  LaneId lane;
  uint64_t position;
  Epoch epoch;
  Range host;        // what the record carries
  FlightId flight;   // kNone: ahead of any request
  uint32_t message;  // which message of the copy
  SlotId reopen;     // not kNone: the plaintext is what this slot holds, sealed at another position
};

// The lane sends the next message: exposes the slot's record, or seals on its own thread if there
// is none (slot == kNone). Report: handle_published(lane, position) when the device has it.
struct Publish {
  LaneId lane;
  uint64_t position;
  Epoch epoch;
  FlightId flight;
  uint32_t message;
  SlotId slot;
  SlotId reopen;         // as in Seal, when slot == kNone
  bool same_crossing;    // continues the call of the message before: no toll of its own
  uint32_t helpers = 0;  // idle workers that may take a share of the copying
};

// No-op messages at [position, position + count). Report: handle_published(lane, last position).
struct Pad {
  LaneId lane;
  uint64_t position;
  uint64_t count;
};

// The lane waits for an earlier request, at most until then. For logs; handle_time() ends it.
struct Hold {
  LaneId lane;
  FlightId flight;
  Instant until;
};

// Wipe the slot now: its record was never exposed, its position may be sealed again.
struct Void {
  SlotId slot;
};

struct Guard {
  Range range;
  GuardKind kind;
};
struct Unguard {
  Range range;
};

// A worker opens one message that arrived from the device. Report: handle_opened().
struct Open {
  FlightId flight;
  uint32_t message;
};

// The program may have its source back: the call returns if it was waiting for that.
struct Release {
  FlightId flight;
};

// To the device: the last byte landed. To the host: verified and in place. The flight is over and
// its number may be used again.
struct Done {
  FlightId flight;
};

using Action = std::variant<Seal, Publish, Pad, Hold, Void, Guard, Unguard, Open, Release, Done>;

}  // namespace sealane
