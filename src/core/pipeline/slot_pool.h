// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which slots are in use, and how much private memory they take. A share of the budget is kept for
// copies that were requested, so that guesses cannot starve them. Pure; allocates when constructed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/pipeline/action.h"
#include "core/ring.h"

namespace sealane {

class SlotPool {
 public:
  static constexpr size_t kSlotsMax = 4096;

  SlotPool(uint64_t bytes_max, bool bounded)
      : bytes_max_(bytes_max), bounded_(bounded), slots_(kSlotsMax), free_(kSlotsMax) {
    for (SlotId id = 0; id < kSlotsMax; ++id) free_.push(id);
  }

  // kNone if the budget does not allow it.
  SlotId take(const Range& host, bool ahead, uint64_t position) {
    const uint64_t limit = ahead ? bytes_max_ - bytes_max_ / 8 : bytes_max_;
    const uint64_t bytes = host.bytes;
    if (free_.empty() || (bounded_ && bytes_ + bytes > limit)) return kNone;
    const SlotId id = free_.front();
    free_.pop();
    slots_[id] = {.position = position, .host = host, .ahead = ahead};
    bytes_ += bytes;
    bytes_peak_ = std::max(bytes_peak_, bytes_);
    return id;
  }

  void orphan(SlotId id, VoidReason why) {
    slots_[id].orphan = true;
    slots_[id].why = why;
  }

  void give(SlotId id) {
    bytes_ -= slots_[id].host.bytes;
    free_.push(id);
  }

  struct Slot {
    uint64_t position = 0;
    Range host;
    bool ahead = false;                   // begun before it was requested
    bool orphan = false;                  // a worker still writes to it, nobody wants the result
    VoidReason why = VoidReason::passed;  // an orphan: nobody does
  };
  Slot& operator[](SlotId id) { return slots_[id]; }
  const Slot& operator[](SlotId id) const { return slots_[id]; }

  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_peak() const { return bytes_peak_; }
  uint64_t bytes_max() const { return bytes_max_; }
  void set_bytes_max(uint64_t bytes) { bytes_max_ = bytes; }
  size_t in_use() const { return kSlotsMax - free_.size(); }

 private:
  uint64_t bytes_max_;
  bool bounded_;
  std::vector<Slot> slots_;
  Ring<SlotId> free_;
  uint64_t bytes_ = 0;
  uint64_t bytes_peak_ = 0;
};

}  // namespace sealane
