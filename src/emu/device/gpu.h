// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One emulated GPU: its memory, its links and its compute engine, shared by all contexts on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/wait_word.h"
#include "emu/device/memory.h"
#include "emu/device/pace.h"

namespace sealane::emu {

class Gpu {
 public:
  Gpu(int ordinal_, int index_, std::unique_ptr<DeviceMemory> owned)
      : ordinal(ordinal_), index(index_), memory(*owned), owned_(std::move(owned)) {}

  const int ordinal;  // as CUDA counts in this process
  const int index;    // as the machine does
  DeviceMemory& memory;
  Server link_to_device;
  Server link_to_host;
  // One kernel at a time: the kernels that matter fill a GPU.
  std::mutex compute;
  Server compute_time;

  // Waits until something changes in device memory. Use: read changes(), look at memory, then
  // await_change() with what was read.
  uint32_t changes() const { return changes_.get(); }
  void await_change(uint32_t seen) const {
    const RealNs began = thread_ns();
    changes_.wait_while(seen);
    arrive(std::max(began, changed_at_.load()));
  }
  void announce_change() {
    changed_at_.store(thread_ns());
    changes_.add(1);
  }

 private:
  const std::unique_ptr<DeviceMemory> owned_;
  WaitWord<uint32_t> changes_{0};
  std::atomic<RealNs> changed_at_{0};
};

}  // namespace sealane::emu
