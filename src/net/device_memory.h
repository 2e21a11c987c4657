// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that messages come from and go to, reached through the driver the process has loaded
// itself, real or emulated: never linked, never loaded by us.
//
// Copies run on a stream of their own that waits for nobody. A collective's kernel spins on the GPU
// until it has what we bring: a copy that waited for it, as those of the default stream do, would
// be waited for by it.
//
// Concurrency: any thread; a copy returns when it is done.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"

namespace sealane::net {

class DeviceMemory {
 public:
  // Of the GPU that has `memory`. A usage error where no driver is loaded, or it is not a GPU's.
  static Result<std::shared_ptr<DeviceMemory>> of(const void* memory);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Status fetch(Bytes device, MutableBytes to) const;  // of the same size
  Status store(MutableBytes device, Bytes from) const;

 private:
  using Context = struct CudaContextOpaque*;
  using Stream = struct CudaStreamOpaque*;
  struct Driver;

  DeviceMemory(const Driver& driver, Context context) : driver_(driver), context_(context) {}
  template <typename Call>
  Status in_context(const char* what, Call call) const;

  static const Driver* loaded();

  const Driver& driver_;
  Context context_;
  Stream stream_ = nullptr;
};

}  // namespace sealane::net
