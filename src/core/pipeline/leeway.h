// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many positions to leave free before a planned transfer. Too few, and a control copy runs into
// the slots; too many, and the gap has to be padded. Learned from how many positions others took
// between bulk requests, which is mostly constant for a program. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"

namespace sealane {

class Leeway {
 public:
  static constexpr uint32_t kMax = 31;

  void observe(uint32_t taken) {
    for (float& weight : weights_) weight *= kDecay;
    weights_[std::min(taken, kMax)] += 1;
  }

  // The leeway whose expected cost is least, if a pad and a lost transfer cost this much.
  uint32_t best(Duration pad, Duration lost) const {
    float more = 0;  // weight of what takes more than the candidate leaves
    for (const float weight : weights_) more += weight;
    float pads = 0;    // expected pads
    float within = 0;  // weight of what the candidate covers
    float least = static_cast<float>(lost.count()) * more;
    uint32_t best = 0;
    for (uint32_t leeway = 0; leeway <= kMax; ++leeway) {
      pads += within;
      within += weights_[leeway];
      more -= weights_[leeway];
      const float cost = pads * static_cast<float>(pad.count()) +
                         std::max(more, 0.0F) * static_cast<float>(lost.count());
      if (leeway == 0 || cost < least) {
        least = cost;
        best = leeway;
      }
    }
    return best;
  }

 private:
  static constexpr float kDecay = 0.9375F;
  std::array<float, kMax + 1> weights_{};
};

}  // namespace sealane
