// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pipeline asks its driver to do. Plain values, carried out in the order they are polled:
// an action takes effect before the next one is polled, work that takes time (Seal, Publish, Pad)
// is started and reported back by a handle_*() event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/copy.h"

namespace sealane {

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
  uint64_t position;
  Range host;       // what the record carries
  FlightId flight;  // kNone: ahead of any request
};

// The lane sends the next message: exposes the slot's record, or seals on its own thread if there
// is none (slot == kNone). Report: handle_published(position) when the driver has it.
struct Publish {
  uint64_t position;
  FlightId flight;
  uint32_t message;
  SlotId slot;
};

// No-op messages at [position, position + count). Report: handle_published(last position).
struct Pad {
  uint64_t position;
  uint64_t count;
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

using Action = std::variant<Seal, Publish, Pad, Void, Guard, Unguard>;

}  // namespace sealane
