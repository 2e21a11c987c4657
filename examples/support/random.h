// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers from a seed, the same on every machine (splitmix64). Not for secrets.
#pragma once

#include <cstdint>

namespace examples {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  uint64_t below(uint64_t bound) { return next() % bound; }

  // Uniform in [-range, range).
  float real(float range) {
    return range * (static_cast<float>(next() >> 40) / static_cast<float>(1 << 23) - 1.0f);
  }

 private:
  uint64_t state_;
};

}  // namespace examples
