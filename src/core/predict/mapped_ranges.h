// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that is known to be mapped, in at most kMax pieces. When there are more, the shortest is
// forgotten: it may then not call memory mapped that is, but never the other way round. Sorted,
// O(log n) to ask, O(n) of a small n to change. Not synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/copy.h"

namespace sealane {

class MappedRanges {
 public:
  static constexpr size_t kMax = 512;

  void add(const Range& mapped);  // neither wraps around the address space
  void erase(const Range& freed);
  bool contains(const Range& range) const;
  size_t count() const { return count_; }

 private:
  struct Piece {
    uint64_t start = 0;
    uint64_t end = 0;
  };

  size_t first_ending_after(uint64_t address) const;
  void insert(size_t at, Piece piece);
  void remove(size_t at, size_t count);
  void forget_shortest();

  std::array<Piece, kMax + 2> pieces_;  // disjoint, by address; a change may need two more
  size_t count_ = 0;
};

}  // namespace sealane
