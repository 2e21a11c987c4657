// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether sealing ahead can pay on a machine, worked out before anything has been copied: the most
// a slot can save, against what it costs to be wrong. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "core/pipeline/costs.h"

namespace sealane {

// What a message of a bulk copy takes the lane, if the lane and all workers share it.
struct SpeculationOutlook {
  // A slot saves the lane time, but costs the machine a second pass over the bytes, sealed when
  // they might not be needed, and the program its pinned memory. MEASURED
  // (docs/results/copies-h100-tdx.txt): up to 1.5 times nothing came of it.
  static constexpr double kMargin = 1.75;

  Duration sealed_now{};  // when it is asked for
  Duration from_slot{};   // the guard's answer included

  bool pays() const {
    return static_cast<double>(sealed_now.count()) >=
           kMargin * static_cast<double>(from_slot.count());
  }
};

// `digests`: pages cannot be protected, so every request reads its source again. The link carries
// one message while the lane works on the next.
inline SpeculationOutlook speculation_outlook(const Costs& costs, bool digests,
                                              double link_ns_per_byte) {
  constexpr uint64_t kBytes = 1_MiB;
  const Duration link = Costs::bytes_time(link_ns_per_byte, kBytes);
  const auto shared = [&](double ns_per_byte) {
    return Costs::bytes_time(ns_per_byte / (costs.workers + 1), kBytes) + costs.message;
  };
  return {std::max(link, shared(costs.seal_ns_per_byte)),
          std::max(link, shared(costs.copy_ns_per_byte)) + costs.check(digests, kBytes)};
}

}  // namespace sealane
