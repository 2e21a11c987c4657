// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Several small copies of a copy thread as one crossing. On the way to the device their bytes are
// gathered in the host, sealed and sent once, and scattered on the device; on the way back the
// other way round. What lies end to end needs neither. They take effect in the order they are
// given.
//
// The memory in between is the copy thread's context's: pinned in the host (its toll is the
// lowest), wiped after every crossing. It is there from the first crossing that needs it until the
// context goes.
//
// Failure: without that memory ready() says no, and every copy travels alone.
// Threads: the copy thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/copy/copy_list.h"
#include "core/copy/gathering.h"
#include "serve/gpu_driver.h"

namespace sealane::serve {

// One of the copies.
struct CrossingPart {
  uint64_t device_address = 0;
  uint8_t* host = nullptr;
  uint64_t bytes = 0;
};

class Crossing {
 public:
  static constexpr uint64_t kBytesMax = CrossingCosts().bytes_max;

  Crossing(GpuDriver& driver, Direction direction) : driver_(driver), direction_(direction) {
    moves_.reserve(CopyList::kMax);
  }

  // Is the memory there that these copies need?
  bool ready(const CopyContext& lane, const Gathering& group);
  // After ready(). Returns when all bytes are in place; no byte is if it fails on the way to the
  // host.
  Code carry(const CopyContext& lane, const Gathering& group, std::span<const CrossingPart> parts);
  void forget();  // the context failed, and its memory is gone with it

 private:
  Code to_device(const CopyContext& lane, const Gathering& group,
                 std::span<const CrossingPart> parts);
  Code to_host(const CopyContext& lane, const Gathering& group,
               std::span<const CrossingPart> parts);
  void plan_moves(std::span<const CrossingPart> parts);

  GpuDriver& driver_;
  const Direction direction_;
  void* host_memory_ = nullptr;
  uint64_t device_memory_ = 0;
  bool refused_ = false;  // no memory to be had
  std::vector<DeviceMove> moves_;
};

// Of the machine, on the emulated GPU's clock if it has one.
CrossingCosts crossing_costs();

}  // namespace sealane::serve
