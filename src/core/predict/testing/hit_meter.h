// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What "hit rate" means everywhere in Sealane: a copy to the device is a hit if, at the moment it
// is requested, it is among the next `leeway` guesses; leeway 1 asks for the very next one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/predict/predictor.h"

namespace sealane {

class HitMeter {
 public:
  explicit HitMeter(size_t leeway) : leeway_(leeway) {}

  size_t leeway() const { return leeway_; }

  // `next` as predicted before the request.
  void count(std::span<const Guess> next, const Range& requested) {
    const auto within = next.first(std::min(leeway_, next.size()));
    const bool hit = std::any_of(within.begin(), within.end(),
                                 [&](const Guess& guess) { return guess.host == requested; });
    hits_ += hit ? 1 : 0;
    copies_ += 1;
    spoken_ += next.empty() ? 0 : 1;
  }

  uint64_t copies() const { return copies_; }
  double hit_rate() const { return share(hits_); }
  double spoken_rate() const { return share(spoken_); }  // how often there was any guess

 private:
  double share(uint64_t part) const {
    return copies_ == 0 ? 0 : static_cast<double>(part) / static_cast<double>(copies_);
  }

  size_t leeway_;
  uint64_t hits_ = 0;
  uint64_t copies_ = 0;
  uint64_t spoken_ = 0;
};

}  // namespace sealane
