// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy that crosses while those before it in its stream still do. Its bytes go into memory of
// ours, on the side where the copy goes: device memory on the way to the device, pinned memory of
// the driver's (its toll is the lowest) on the way to the host. When its turn has come they land:
// moved within the device, or by all workers within the host.
//
// The memory is the copy thread's context's. It is there from the first crossing that needs it
// until the context goes; in the host it is wiped as soon as its bytes have landed or must not.
//
// Failure: without that memory ready() says no, and the copy waits for its turn.
// Threads: the copy thread only.
#pragma once

#include <cstdint>

#include "core/copy.h"
#include "serve/gpu_driver.h"
#include "serve/program_memory.h"

namespace sealane::serve {

class EarlyCrossing {
 public:
  EarlyCrossing(GpuDriver& driver, ProgramMemory& memory, Direction direction)
      : driver_(driver), memory_(memory), direction_(direction) {}

  // Is the memory there?
  bool ready(const CopyContext& lane);
  // Where the copy crosses to instead: the one on its way to the device, the other to the host.
  uint64_t device() const { return device_memory_; }
  uint8_t* host() const { return static_cast<uint8_t*>(host_memory_); }
  // Returns when the bytes are where they belong.
  Code land(const CopyContext& lane, uint64_t device, uint8_t* host, uint64_t bytes);
  void discard(uint64_t bytes);  // they must not land
  void forget();                 // the context failed, and its memory is gone with it

 private:
  GpuDriver& driver_;
  ProgramMemory& memory_;
  const Direction direction_;
  void* host_memory_ = nullptr;
  uint64_t device_memory_ = 0;
  bool refused_ = false;  // no memory to be had
};

}  // namespace sealane::serve
