// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a bulk copy faster if it is cut over several contexts? Told by the first copies themselves,
// which go one way and the other by turns: nothing is sent that nobody asked for, and nobody waits
// for a trial. Pure; no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace sealane {

class StripeTrial {
 public:
  enum class Way : uint8_t { whole, striped };
  static constexpr uint32_t kCopiesEach = 4;
  static constexpr double kMargin = 1.1;  // contexts are scarce: by so much it must be faster

  // Which way the next copy goes.
  Way next() const {
    if (decided()) return pays() ? Way::striped : Way::whole;
    return copies(Way::striped) < copies(Way::whole) ? Way::striped : Way::whole;
  }
  // It went, and took so long.
  void handle(Way way, uint64_t bytes, Duration took) {
    if (decided()) return;
    Tried& of = tried_[static_cast<size_t>(way)];
    ++of.copies;
    of.ns_per_byte =
        std::min(of.ns_per_byte, static_cast<double>(took.count()) / static_cast<double>(bytes));
  }

  bool decided() const { return std::min(copies(Way::whole), copies(Way::striped)) >= kCopiesEach; }
  bool pays() const { return best(Way::striped) * kMargin <= best(Way::whole); }
  // Of the fastest copy: others may disturb one, nobody makes it faster.
  double best(Way way) const { return tried_[static_cast<size_t>(way)].ns_per_byte; }

 private:
  struct Tried {
    uint32_t copies = 0;
    double ns_per_byte = std::numeric_limits<double>::max();
  };
  uint32_t copies(Way way) const { return tried_[static_cast<size_t>(way)].copies; }

  std::array<Tried, 2> tried_{};
};

}  // namespace sealane
