// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Randomness as an interface: keys come from SystemRandom, simulations and tests from a
// SeededRandom, which is the same on every machine and must never make a key.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sealane {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(MutableBytes out) = 0;
};

// The kernel's generator. Safe to use from any thread; aborts if the kernel has no randomness.
class SystemRandom final : public Random {
 public:
  void fill(MutableBytes out) override;
};

// xoshiro256** seeded by splitmix64. One seed, one sequence. Not for secrets, not synchronised.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed);

  void fill(MutableBytes out) override;
  uint64_t next();
  uint64_t below(uint64_t bound);                   // uniform in [0, bound); bound > 0
  uint64_t between(uint64_t first, uint64_t last);  // uniform in [first, last]
  double real();                                    // uniform in [0, 1)
  bool chance(double probability) { return real() < probability; }

 private:
  uint64_t state_[4];
};

}  // namespace sealane
