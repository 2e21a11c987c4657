// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Learns a channel's IV law (iv_law.h) from the IVs alone, without knowing mask or counter.
//
// Under the law consecutive IVs XOR to counter ^ (counter + 1) = 2^(t+1) - 1, where t is the number
// of ones at the counter's low end. So each step tells t, and the largest t seen so far fixes the
// counter's lowest t + 1 bits: from then on the step after every message whose low bits are not all
// ones is foretold, and is checked. A step that was not foretold and is not of that form, or that
// was foretold differently, breaks the law.
//
//   counter   …011  …100  …101  …110  …111        t of the steps: 2 0 1 0
//
// Bits that have not been seen to change cannot be known, and are not needed.
// Pure, not synchronised.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "seal/aead.h"

namespace sealane {

class IvLearner {
 public:
  // The next message of the channel. False: it does not follow the law; it is counted, and learning
  // begins again from it.
  bool observe(const Iv& iv) {
    if (++seen_ == 1) return restart(iv);
    const std::optional<Iv> expected = next();
    const uint32_t step = low(iv) ^ low(last_);
    const bool is_step = same_channel(iv) && std::has_single_bit(uint64_t{step} + 1) && step != 0;
    if (expected ? iv != *expected : !is_step || !may_be_new(step)) {
      ++broken_;
      restart(iv);
      return false;
    }
    learn(step);
    last_ = iv;
    return true;
  }

  // The IV of the next message, if what was learned says it.
  std::optional<Iv> next() const {
    if (known_bits_ == 0) return std::nullopt;
    const uint32_t mask = bits(known_bits_);
    if ((counter_ & mask) == mask) return std::nullopt;
    const uint32_t step = counter_ ^ (counter_ + 1);
    Iv out = last_;
    store_le(out.data(), low(last_) ^ step);
    return out;
  }

  uint64_t seen() const { return seen_; }
  uint64_t broken() const { return broken_; }
  bool is_first() const { return seen_ == 1; }

 private:
  static constexpr uint32_t bits(int count) {
    return count >= 32 ? UINT32_MAX : (uint32_t{1} << count) - 1;
  }
  static uint32_t low(const Iv& iv) { return load_le<uint32_t>(iv.data()); }
  bool same_channel(const Iv& iv) const {
    return load_le<uint64_t>(iv.data() + 4) == load_le<uint64_t>(last_.data() + 4);
  }

  bool restart(const Iv& iv) {
    last_ = iv;
    known_bits_ = 0;
    counter_ = 0;
    return true;
  }

  // Where nothing was foretold the known bits were all ones: the step goes at least one bit
  // further.
  bool may_be_new(uint32_t step) const { return std::popcount(step) > known_bits_; }

  void learn(uint32_t step) {
    const int ones = std::popcount(step);  // t + 1
    if (ones > known_bits_) {
      known_bits_ = ones;
      counter_ = bits(ones - 1) + 1;  // after the step: a one above zeros
      return;
    }
    counter_ = (counter_ + 1) & bits(known_bits_);
  }

  Iv last_{};
  uint32_t counter_ = 0;  // of `last_`, its lowest known_bits_
  int known_bits_ = 0;
  uint64_t seen_ = 0;
  uint64_t broken_ = 0;
};

}  // namespace sealane
