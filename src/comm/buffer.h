// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The caller's memory as one run of bytes, though it may be many tensors, some of them on a GPU. A
// range that lies in one tensor of the host is used where it is; one that straddles tensors or lies
// on a GPU passes through a scratch area.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "comm/device_windows.h"

namespace sealane {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::vector<MutableBytes> tensors);

  uint64_t bytes() const { return starts_.empty() ? 0 : starts_.back(); }

  // Finds out which tensors are on a GPU. They are seen through `windows`, made here when they are
  // first needed; both stay until finish(). Without this call all memory is the host's.
  void locate(std::unique_ptr<DeviceWindows>& windows, uint32_t ranks);
  // Where GPU memory could not be read, read() returns zeros: ask before a result leaves this rank.
  Status problem() const;
  Status finish() const;  // what was written has arrived

  // `scratch` has at least `count` bytes and is used unless the range can be read where it is.
  Bytes read(uint64_t offset, size_t count, MutableBytes scratch) const;
  // Where to put a result; finish with written().
  MutableBytes target(uint64_t offset, size_t count, MutableBytes scratch) const;
  void written(uint64_t offset, MutableBytes result) const;

 private:
  size_t tensor_at(uint64_t offset) const;
  uint8_t* contiguous(uint64_t offset, size_t count) const;  // null: use scratch
  template <typename Move>
  void for_pieces(uint64_t offset, size_t count, Move move) const;

  std::vector<MutableBytes> tensors_;
  std::vector<std::optional<GpuMemory::Context>> owners_;  // per tensor; empty: all the host's
  DeviceWindows* windows_ = nullptr;
  std::vector<uint64_t> starts_;  // of each tensor, and the end
};

}  // namespace sealane
