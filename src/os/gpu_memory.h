// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// GPU memory, reached through the driver the program itself uses: libcuda.so.1, real or emulated,
// is looked up among the libraries that are loaded already. It is never linked and never loaded by
// us, so a program without a GPU stays one.
//
// Copies are synchronous and run in the context that owns the memory; work queued on streams is not
// waited for. Safe on any thread.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace sealane {

class GpuMemory {
 public:
  using Context = struct CudaContextOpaque*;

  // The driver of this process; null as long as it has loaded none.
  static const GpuMemory* loaded();

  // Whose memory it is, if only a GPU can reach it; nothing for host, pinned and managed memory.
  // The context itself may be null: pools have none of their own.
  std::optional<Context> owner(const void* memory) const;

  Status fetch(Context context, const void* device, MutableBytes to) const;
  Status store(Context context, void* device, Bytes from) const;

 private:
  template <typename Copy>
  Status copy(Context context, const char* what, Copy copy) const;

  using DevicePointer = unsigned long long;
  int (*pointer_attribute_)(void*, int, DevicePointer) = nullptr;
  int (*push_context_)(Context) = nullptr;
  int (*pop_context_)(Context*) = nullptr;
  int (*device_to_host_)(void*, DevicePointer, size_t) = nullptr;
  int (*host_to_device_)(DevicePointer, const void*, size_t) = nullptr;
};

}  // namespace sealane
