// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors in GPU memory, seen through a few windows in host memory. A crossing has a fixed toll,
// and a schedule walks through several blocks at once, record by record: so a window is much longer
// than a record, and there is one for each block. What lies beyond is crossed once each way.
//
// Only bytes that were written go back, so tensors may be used in place. The first failure stays:
// reads then return zeros, and finish() tells. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/gpu_memory.h"

namespace sealane {

class DeviceWindows {
 public:
  static constexpr size_t kBytes = size_t{4} << 20;  // of all windows together

  explicit DeviceWindows(uint32_t ranks);

  // `tensor` is the whole range of device memory that may be touched; [at, at + size) lies in it.
  void read(GpuMemory::Context context, MutableBytes tensor, uint64_t at, MutableBytes to);
  void write(GpuMemory::Context context, MutableBytes tensor, uint64_t at, Bytes from);

  const std::optional<Error>& failure() const { return failure_; }

  // Everything that was written is on the device, or the first failure. Forgets all windows.
  Status finish();

 private:
  struct Window {
    uint8_t* device = nullptr;  // null: unused
    GpuMemory::Context context = nullptr;
    size_t bytes = 0;
    bool loaded = false;    // the host copy is what the device has, but for what was written since
    size_t dirty_from = 0;  // written here and not there
    size_t dirty_to = 0;
    uint64_t last_use = 0;
    std::vector<uint8_t> host;

    bool dirty() const { return dirty_to > dirty_from; }
  };

  // Calls use(window, offset in it, offset of the piece, bytes) for the windows the range lies in.
  template <typename Use>
  void for_windows(GpuMemory::Context context, MutableBytes tensor, uint64_t at, size_t count,
                   Use use);
  Window& window_at(GpuMemory::Context context, MutableBytes tensor, uint64_t start);
  void load(Window& window);
  void flush(Window& window);
  void note(const Status& status);

  size_t window_bytes_;
  std::vector<Window> windows_;
  uint64_t uses_ = 0;
  std::optional<Error> failure_;
};

}  // namespace sealane
