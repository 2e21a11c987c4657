// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranges that keep changing between being sealed and being asked for are left alone, each time for
// twice as many chances as before. A direct-mapped table of fixed size: two ranges that share an
// entry forget each other, which costs a wasted seal and no more. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/copy.h"

namespace sealane {

class ChangingRanges {
 public:
  // The range was written after it was sealed.
  void strike(const Range& range) {
    Entry& entry = at(range);
    if (entry.range != range) entry = {range, 0, 0};
    entry.strikes = static_cast<uint8_t>(std::min(entry.strikes + 1, kStrikesMax));
    entry.skip = uint16_t(1) << entry.strikes;
  }

  // It was still good when it was asked for.
  void held(const Range& range) {
    Entry& entry = at(range);
    if (entry.range == range) entry = {};
  }

  // Whether to leave it alone; each request of a range left alone brings its next chance nearer.
  bool avoid(const Range& range) const {
    const Entry& entry = at(range);
    return entry.range == range && entry.skip > 0;
  }
  void requested(const Range& range) {
    Entry& entry = at(range);
    if (entry.range == range && entry.skip > 0) --entry.skip;
  }

 private:
  static constexpr int kStrikesMax = 12;
  struct Entry {
    Range range;
    uint8_t strikes = 0;
    uint16_t skip = 0;
  };

  static size_t index(const Range& range) {
    const uint64_t mixed = (range.address ^ (range.bytes << 17)) * 0x9e3779b97f4a7c15;
    return mixed >> (64 - 10);
  }
  Entry& at(const Range& range) { return entries_[index(range)]; }
  const Entry& at(const Range& range) const { return entries_[index(range)]; }

  std::array<Entry, 1024> entries_{};
};

}  // namespace sealane
