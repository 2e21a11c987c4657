// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of many ranges, overlapping or not, touch a given one? Ranges are filed under the cell in
// which they begin: cells of 1 MiB for all that are shorter, and for each longer size class cells
// twice as long as its shortest. So a range reaches at most into the cell after its own, and a
// question looks at the few cells of each class that the asked range covers, and one before.
//
// Filing and removing are O(1), because copies do that; asking is for frees, and costs the length
// of the free in cells, at most one look at every range. Fixed memory. Not synchronised.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/copy.h"
#include "core/predict/hash.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

class IntervalIndex {
 public:
  // Slots 0 .. capacity-1 name the ranges.
  explicit IntervalIndex(size_t capacity) : nodes_(capacity), heads_(std::bit_ceil(capacity)) {}

  // The slot must be unused; the range carries bytes.
  void insert(uint32_t slot, const Range& range) {
    uint32_t& head = heads_[bucket(shift_of(range), range.address)];
    nodes_[slot] = {range, kNone, head};
    if (head != kNone) nodes_[head - 1].previous = slot + 1;
    head = slot + 1;
    ++filed_[shift_of(range)];
  }

  void erase(uint32_t slot) {
    const Node node = nodes_[slot];
    const uint32_t shift = shift_of(node.range);
    (node.previous == kNone ? heads_[bucket(shift, node.range.address)]
                            : nodes_[node.previous - 1].next) = node.next;
    if (node.next != kNone) nodes_[node.next - 1].previous = node.previous;
    nodes_[slot].range = {};
    --filed_[shift];
  }

  // Calls visit(slot) for each range that overlaps; visit may erase that slot.
  template <typename Visit>
  void each_overlap(const Range& asked, Visit&& visit) {
    for (uint32_t shift = kShiftMin; shift <= kShiftMax; ++shift) {
      if (filed_[shift] == 0) continue;
      const uint64_t last = (asked.end() - 1) >> shift;
      const uint64_t first = asked.address >> shift;
      if (last - first >= nodes_.size()) return scan(asked, visit);
      for (uint64_t cell = first - (first > 0 ? 1 : 0); cell <= last; ++cell) {
        visit_cell(heads_[bucket(shift, cell << shift)], asked, visit);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kShiftMin = 20;
  static constexpr uint32_t kShiftMax = 63;

  struct Node {
    Range range;                // of no bytes while unused
    uint32_t previous = kNone;  // neighbours in the chain, slot + 1
    uint32_t next = kNone;
  };

  // Cells of 2^shift bytes are at least as long as the range.
  static uint32_t shift_of(const Range& range) {
    const auto width = static_cast<uint32_t>(std::bit_width(range.bytes));
    return std::clamp(width, kShiftMin, kShiftMax);
  }

  size_t bucket(uint32_t shift, uint64_t address) const {
    return mix_bits((address >> shift) * 64 + shift) & (heads_.size() - 1);
  }

  // Other cells may share the bucket; what does not overlap is passed over.
  template <typename Visit>
  void visit_cell(uint32_t link, const Range& asked, Visit& visit) {
    while (link != kNone) {
      const uint32_t slot = link - 1;
      link = nodes_[slot].next;
      if (nodes_[slot].range.overlaps(asked)) visit(slot);
    }
  }

  template <typename Visit>
  void scan(const Range& asked, Visit& visit) {
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      if (nodes_[slot].range.bytes > 0 && nodes_[slot].range.overlaps(asked)) visit(slot);
    }
  }

  ZeroedArray<Node> nodes_;      // by slot
  ZeroedArray<uint32_t> heads_;  // of the chains, slot + 1, a power of two
  uint32_t filed_[kShiftMax + 1] = {};
};

}  // namespace sealane
