// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Accepts each position once, up to kSpan behind the newest. For lanes whose records travel over
// several connections and so arrive out of order; ask with seen() before the tag is checked, tell
// with accept() after. Pure, not synchronised.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"

namespace sealane {

class ReplayWindow {
 public:
  static constexpr uint64_t kSpan = 1024;

  // True if `position` was accepted before, or is too old to tell.
  bool seen(uint64_t position) const {
    if (position >= next_) return false;
    if (next_ - position > kSpan) return true;
    return bit(position);
  }

  void accept(uint64_t position) {
    SEALANE_CHECK(!seen(position), "accepted a replay");
    if (position >= next_) {
      // Every position the window newly covers starts out unseen.
      const uint64_t oldest = position >= kSpan ? position - kSpan + 1 : 0;
      for (uint64_t p = std::max(next_, oldest); p <= position; ++p) clear(p);
      next_ = position + 1;
    }
    words_[index(position)] |= mask(position);
  }

 private:
  static size_t index(uint64_t position) { return position % kSpan / 64; }
  static uint64_t mask(uint64_t position) { return uint64_t{1} << (position % 64); }
  bool bit(uint64_t position) const { return (words_[index(position)] & mask(position)) != 0; }
  void clear(uint64_t position) { words_[index(position)] &= ~mask(position); }

  uint64_t next_ = 0;  // one past the newest accepted
  std::array<uint64_t, kSpan / 64> words_{};
};

}  // namespace sealane
