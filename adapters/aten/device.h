// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Work that runs on the emulated GPU, in the order of a CUDA stream, on a thread of the device.
// Safe from any thread.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "sealane_emu.h"

namespace sealane::aten {

// What work sees of the device. Throws c10::Error if the device has no such memory.
class Device {
 public:
  explicit Device(const sealane_emu_launch& launch) : launch_(launch) {}
  void* memory(uint64_t address, size_t bytes) const;
  void charge(double operations, double bytes) const {
    launch_.charge(&launch_, operations, bytes);
  }

 private:
  const sealane_emu_launch& launch_;
};

using Work = std::function<void(const Device&)>;

// Whether this process has the emulated GPU: a real driver knows nothing of it.
bool device_is_emulated();

// Behind everything in the stream. What a capturing stream is given stays for every replay. Work
// that throws fails the context (CUDA error 700) and says why on stderr, under this name.
void launch(const c10::Stream& stream, const char* name, Work work);

}  // namespace sealane::aten
