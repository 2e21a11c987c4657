// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How to write memory that another core reads and then leaves to be written again: through the
// caches, or past them. Through them is faster where both cores share a cache. Where they do not,
// each line has to be taken back from the other side first, which costs several times the AES; and
// a machine, a virtual one most of all, moves threads from one case to the other.
//
// So it is measured: both ways are tried, the faster one is kept, and the other is tried again now
// and then. Pure, not synchronised.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace sealane {

class StoreChoice {
 public:
  static constexpr size_t kBytesMin = 16 << 10;    // less is not worth asking
  static constexpr uint32_t kTrialInterval = 100;  // records from one trial to the next

  // For the next record of so many bytes: past the caches?
  bool streamed(size_t bytes) const {
    return bytes >= kBytesMin && (trial_due() ? !prefers_streaming() : prefers_streaming());
  }

  // A record took so long, written as streamed() had said.
  void handle_written(size_t bytes, Duration took) {
    if (bytes < kBytesMin) return;
    const bool trial = trial_due();
    double& known = ns_per_byte_[streamed(bytes) ? 1 : 0];
    const double now = static_cast<double>(took.count()) / static_cast<double>(bytes);
    // Nothing makes a record faster than it can be; but a thread that was interrupted says nothing
    // about memory.
    known = known == 0 || now < known ? now : known + (std::min(now, 4 * known) - known) / 8;
    records_ = trial ? 1 : records_ + 1;
  }

 private:
  // Who reads fetches what was streamed from further away.
  static constexpr double kReaderShare = 1.3;

  bool trial_due() const {
    return (ns_per_byte_[1] == 0 && ns_per_byte_[0] != 0) || records_ >= kTrialInterval;
  }
  bool prefers_streaming() const {
    return ns_per_byte_[1] != 0 && ns_per_byte_[1] * kReaderShare < ns_per_byte_[0];
  }

  std::array<double, 2> ns_per_byte_{};  // through the caches, past them; 0: not tried yet
  uint32_t records_ = 0;
};

}  // namespace sealane
