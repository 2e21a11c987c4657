// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows the IVs of a channel whose counter is somebody else's, and says what the next ones will
// be. The law (iv_law.h) is known, mask and counter are not: but neighbours differ by counter XOR
// (counter + 1), a run of ones as long as the run of ones at the counter's end, so each step shows
// some low bits of the counter. Bits not seen yet are taken for zero, which is right for a channel
// that was young when we met it.
//
// A prediction may be wrong; whoever uses one compares it with the IV that comes. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "seal/aead.h"

namespace sealane {

class IvFollower {
 public:
  // The IV of the channel's next message. Returns how many positions it is behind the one before
  // (1: its neighbour), or nothing for the first one and for one the law does not explain, after
  // which it is as if this were the first.
  std::optional<uint64_t> observe(const Iv& iv) {
    const uint32_t difference = word(iv) ^ word(last_);
    const bool same_channel = seen_ && rest(iv) == rest(last_);
    last_ = iv;
    seen_ = true;
    if (!same_channel || difference == 0) return forget();
    if (std::has_single_bit(difference + 1) && neighbour(difference)) return 1;
    const uint32_t moved = counter_ ^ difference;
    if (difference >= known_values() || moved <= counter_) return forget();
    const uint64_t steps = moved - counter_;
    counter_ = moved;
    return steps;
  }

  // The IV of the message `steps` positions behind the last one seen. Not before the first.
  Iv predict(uint64_t steps) const {
    Iv iv = last_;
    const auto next = static_cast<uint32_t>(counter_ + steps);
    store_le(iv.data(), word(last_) ^ counter_ ^ next);
    return iv;
  }

  bool started() const { return seen_; }
  const Iv& last() const { return last_; }

 private:
  static uint32_t word(const Iv& iv) { return load_le<uint32_t>(iv.data()); }
  static uint64_t rest(const Iv& iv) { return load_le<uint64_t>(iv.data() + 4); }
  uint64_t known_values() const { return uint64_t{1} << known_bits_; }

  // A step by one from a counter that ends in a run of ones shows that run and the zero before it.
  bool neighbour(uint32_t difference) {
    const auto bits = static_cast<uint32_t>(std::bit_width(difference));
    const uint32_t ones = difference >> 1;  // how the counter ended
    const uint32_t mask = static_cast<uint32_t>(known_values() - 1);
    if (((counter_ ^ ones) & mask & difference) != 0) return false;
    if (bits > known_bits_) {
      known_bits_ = bits;
      counter_ = ones;
    }
    ++counter_;
    return true;
  }

  std::optional<uint64_t> forget() {
    known_bits_ = 0;
    counter_ = 0;
    return std::nullopt;
  }

  Iv last_{};
  bool seen_ = false;
  uint32_t known_bits_ = 0;
  uint32_t counter_ = 0;  // of the last IV; right in the known bits, zero above
};

}  // namespace sealane
