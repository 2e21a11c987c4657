// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a thread of the program asks for, in the simulator's numbers.
#pragma once

#include <cstdint>

#include "platform/cost.h"
#include "sim/device.h"

namespace sealane::sim {

inline constexpr Duration kCallTime{500};  // what a call of the driver costs its caller

struct ProgramCopy {
  CallId call = kNoCall;
  uint32_t stream = 0;
  Direction direction = Direction::to_device;
  Range host;
  uint64_t device = 0;
  MemoryKind memory = MemoryKind::pinned;
  bool sync = false;
};

inline HostMemory host_memory(MemoryKind kind) {
  return kind == MemoryKind::pinned ? HostMemory::pinned : HostMemory::pageable;
}

// What a call that puts such an item into a stream takes its caller. With CC an event record is
// dear (platforms/: measured, whoever makes it); of waits for an event or a word nobody has
// published anything, so they cost no more than without.
inline Duration call_time(const Gpu& gpu, ItemKind kind, bool cc) {
  if (kind == ItemKind::kernel) return launch_time(gpu, cc);
  return kCallTime + (kind == ItemKind::record ? call_surcharge(gpu, cc) : Duration{0});
}
// What the device is to do for a call that is not a copy.
struct ProgramCall {
  ItemKind kind{};
  uint32_t stream = 0;
  CallId call = kNoCall;
  CallId record = kNoCall;
  uint32_t event = 0;
  Duration run_time{0};
  uint32_t flag = 0;          // hold
  workload::WorkKind work{};  // work
  Range host{};
};

}  // namespace sealane::sim
