// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/random.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/check.h"

namespace sealane {

void SystemRandom::fill(MutableBytes out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    SEALANE_CHECK(got > 0, "the kernel gave no randomness");
    out = out.subspan(static_cast<size_t>(got));
  }
}

SeededRandom::SeededRandom(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    word = mixed ^ (mixed >> 31);
  }
}

uint64_t SeededRandom::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t SeededRandom::below(uint64_t bound) {
  SEALANE_CHECK(bound > 0, "below() needs a bound above 0");
  // Values under 2^64 mod bound would make the low results more likely: draw again.
  const uint64_t unfair = (0 - bound) % bound;
  for (;;) {
    const uint64_t drawn = next();
    if (drawn >= unfair) return drawn % bound;
  }
}

uint64_t SeededRandom::between(uint64_t first, uint64_t last) {
  SEALANE_CHECK(first <= last, "between() needs first <= last");
  const uint64_t span = last - first + 1;
  return span == 0 ? next() : first + below(span);
}

double SeededRandom::real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

void SeededRandom::fill(MutableBytes out) {
  while (!out.empty()) {
    uint8_t word[8];
    store_le(word, next());
    const size_t count = std::min(out.size(), sizeof word);
    std::copy_n(word, count, out.begin());
    out = out.subspan(count);
  }
}

}  // namespace sealane
