// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The caller's memory as one run of bytes, though it may be many tensors. A range that lies in one
// tensor is used where it is; one that straddles tensors passes through a scratch area.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace sealane {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::vector<MutableBytes> tensors);

  uint64_t bytes() const { return starts_.empty() ? 0 : starts_.back(); }

  // `scratch` has at least `count` bytes and is used only if the range straddles tensors.
  Bytes read(uint64_t offset, size_t count, MutableBytes scratch) const;
  // Where to put a result; finish with written().
  MutableBytes target(uint64_t offset, size_t count, MutableBytes scratch) const;
  void written(uint64_t offset, MutableBytes result) const;

 private:
  size_t tensor_at(uint64_t offset) const;
  uint8_t* contiguous(uint64_t offset, size_t count) const;  // null if it straddles
  template <typename Move>
  void for_pieces(uint64_t offset, size_t count, Move move) const;

  std::vector<MutableBytes> tensors_;
  std::vector<uint64_t> starts_;  // of each tensor, and the end
};

}  // namespace sealane
