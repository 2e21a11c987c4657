// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Small numbers for host ranges. Predictors remember BufferIds, never addresses, so what they guess
// does not depend on where memory lies, and a free is dealt with in one place: it ends the ids of
// all ranges it touches, and an id that ended is not guessed, wherever it is still remembered.
//
// At most `capacity` ranges are known. A new one takes the place of one that has not come again
// lately (second chance), so ranges that never recur push each other out and not those that do.
//
// Several predictors may share a table: each calls intern() and forget() itself, and repeating a
// call changes nothing. Fails by answering an invalid id to ranges that carry no bytes.
// Amortised O(1) per range, known or new; a free costs what interval_index.h says. Not
// synchronised.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/copy.h"
#include "core/predict/interval_index.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

struct BufferId {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t slot = kNone;
  uint32_t generation = 0;  // which of the ranges that lived in this slot; the first is 1

  bool valid() const { return slot != kNone; }
  bool operator==(const BufferId&) const = default;
};

// Ranges whose lengths have the same highest bit are of one class: 0..63.
constexpr size_t size_class_of(const Range& range) {
  return static_cast<size_t>(std::bit_width(range.bytes / 2));
}

class BufferTable {
 public:
  explicit BufferTable(size_t capacity);

  BufferId intern(const Range& range);
  void forget(const Range& freed);

  // False once the range was freed or pushed out.
  bool alive(BufferId id) const {
    return id.valid() && slots_[id.slot].generation() == id.generation;
  }
  const Range& range(BufferId id) const { return slots_[id.slot].range; }

  size_t size() const { return fresh_ - unused_.size(); }
  size_t capacity() const { return slots_.size(); }

 private:
  struct Slot {
    Range range;
    uint32_t ended = 0;     // ranges that lived here before
    bool recurred = false;  // since the hand last passed

    uint32_t generation() const { return ended + 1; }
  };

  size_t home(const Range& range) const;
  size_t locate(const Range& range) const;  // its cell, or the empty one where it belongs
  uint32_t add(const Range& range);
  void drop(uint32_t slot);
  void evict_one();

  ZeroedArray<Slot> slots_;
  size_t fresh_ = 0;              // slots from here on were never used
  std::vector<uint32_t> unused_;  // a stack of those that were
  ZeroedArray<uint32_t> cells_;   // open addressing, slot + 1, at most half full
  IntervalIndex by_address_;
  size_t hand_ = 0;
  BufferId last_;  // of the latest intern(): sharers ask for the same range one after the other
};

}  // namespace sealane
