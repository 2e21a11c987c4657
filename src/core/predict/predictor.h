// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What will be copied next. A Predictor is one idea about that (a contestant of the Tournament); a
// GuessSource is what the pipeline asks: the Tournament, or the rules of the PipeLLM paper.
//
// A guess is a hint. It may be wrong, and a range it names may not be mapped any more unless the
// caller reports every free with forget(). Nothing here fails: a copy of nothing, or one that wraps
// around the address space, is ignored.
//
// Everything in this folder is pure and not synchronised; it allocates only when constructed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/copy.h"

namespace sealane {

// One copy as the program asked for it.
struct Transfer {
  Direction direction = Direction::to_device;
  Range host;
};

// One expected copy to the device.
struct Guess {
  Range host;
  float confidence = 0;  // 0..1
};

class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual std::string_view name() const = 0;
  virtual void observe(const Transfer& transfer) = 0;  // every copy, in the order of the requests
  // The next copies to the device, in order. Returns how many were written; 0 means silent.
  virtual size_t predict(std::span<Guess> next) const = 0;
  // The memory was freed: no range that touches it is guessed again before it is seen again.
  virtual void forget(const Range& freed) = 0;
};

// How often a predictor has been right.
struct PredictorScore {
  std::string_view name;
  double slow = 0;  // two decaying means, 0..1: over many copies, over few
  double fast = 0;
  uint64_t hits = 0;    // copies to the device that were among the first guesses
  uint64_t misses = 0;  // and those that were not

  double recent_hit_rate() const { return slow > fast ? slow : fast; }
};

class GuessSource {
 public:
  virtual ~GuessSource() = default;
  virtual void observe(const Transfer& transfer) = 0;
  // The memory was allocated: it may be guessed before any copy has touched it.
  virtual void allow(const Range&) {}
  virtual void forget(const Range& freed) = 0;
  virtual size_t predict(std::span<Guess> next) = 0;
  virtual std::string_view leader() const = 0;  // whose guesses predict() gives, "" when silent
  virtual std::span<const PredictorScore> scores() const { return {}; }  // of those it chooses from
};

// How sure a predictor is of a guess it has `evidence` for, 1 to `evidence_max`. Never little: how
// often its guesses come true is for the tournament to say, which has counted.
constexpr float confidence_of(uint32_t evidence, uint32_t evidence_max) {
  return 0.75F + 0.25F * static_cast<float>(evidence) / static_cast<float>(evidence_max);
}

// A copy that carries bytes and does not wrap around the address space.
constexpr bool carries_bytes(const Range& range) {
  return range.bytes > 0 && range.address <= UINT64_MAX - range.bytes;
}

}  // namespace sealane
