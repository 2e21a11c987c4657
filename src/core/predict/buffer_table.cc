// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/buffer_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "core/predict/hash.h"
#include "core/predict/predictor.h"

namespace sealane {

BufferTable::BufferTable(size_t capacity)
    : slots_(capacity), cells_(std::bit_ceil(2 * capacity)), by_address_(capacity) {
  SEALANE_CHECK(capacity > 0 && capacity < BufferId::kNone / 2, "capacity out of range");
  unused_.reserve(capacity);
}

BufferId BufferTable::intern(const Range& range) {
  if (!carries_bytes(range)) return {};
  if (alive(last_) && slots_[last_.slot].range == range) return last_;
  const uint32_t cell = cells_[locate(range)];
  const uint32_t slot = cell != 0 ? cell - 1 : add(range);
  slots_[slot].recurred = cell != 0;
  last_ = {slot, slots_[slot].generation()};
  return last_;
}

void BufferTable::forget(const Range& freed) {
  if (freed.bytes == 0) return;
  const Range clipped{freed.address, std::min(freed.bytes, UINT64_MAX - freed.address)};
  by_address_.each_overlap(clipped, [this](uint32_t slot) { drop(slot); });
}

size_t BufferTable::home(const Range& range) const {
  return mix_bits(range.address ^ mix_bits(range.bytes)) & (cells_.size() - 1);
}

size_t BufferTable::locate(const Range& range) const {
  size_t at = home(range);
  while (cells_[at] != 0 && slots_[cells_[at] - 1].range != range) {
    at = (at + 1) & (cells_.size() - 1);
  }
  return at;
}

uint32_t BufferTable::add(const Range& range) {
  if (unused_.empty()) {
    if (fresh_ == slots_.size()) {
      evict_one();
    } else {
      unused_.push_back(static_cast<uint32_t>(fresh_++));
    }
  }
  const uint32_t slot = unused_.back();
  unused_.pop_back();
  slots_[slot].range = range;
  cells_[locate(range)] = slot + 1;  // looked up again: evicting may have moved the empty cell
  by_address_.insert(slot, range);
  return slot;
}

void BufferTable::drop(uint32_t slot) {
  const size_t mask = cells_.size() - 1;
  size_t hole = locate(slots_[slot].range);
  // Close the gap in the probe sequence: whatever was pushed past the hole moves back into it.
  for (size_t at = (hole + 1) & mask; cells_[at] != 0; at = (at + 1) & mask) {
    const size_t wanted = home(slots_[cells_[at] - 1].range);
    if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
    cells_[hole] = cells_[at];
    hole = at;
  }
  cells_[hole] = 0;
  by_address_.erase(slot);
  ++slots_[slot].ended;
  slots_[slot].recurred = false;
  unused_.push_back(slot);
}

// Only when every slot is in use.
void BufferTable::evict_one() {
  while (std::exchange(slots_[hand_].recurred, false)) hand_ = (hand_ + 1) % slots_.size();
  drop(static_cast<uint32_t>(hand_));
  hand_ = (hand_ + 1) % slots_.size();
}

}  // namespace sealane
