// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows whichever predictor has lately been right, and is silent when none is right often enough.
//
// 1. Judge: when a copy to the device is requested, each contestant is asked what it expected. A
//    hit at place r of its guesses counts 1/2^r, places from kLeeway on count nothing. The score
//    is a decaying mean of that, in which a copy smaller than the average counts in proportion to
//    its bytes: control copies, which nobody can foresee and which cost little, do not drown the
//    rest. There are two means, over about 16 copies and over about 4, and the better one counts:
//    three hits in a row are enough to be heard, three misses do not undo a long record.
// 2. Observe: every contestant sees every copy, also while it is not followed.
// 3. Elect: the best contestant takes over when it is better than the leader by a margin, and may
//    lead once its score reaches `speak_at`; a leader that falls below `silent_below` is dropped.
// 4. Predict: the leader's guesses; where they end (a model is loaded to the end of its memory) the
//    second best goes on.
//
//   repetition            the joint sequence repeats               (repetition.h)
//   repetition-by-size    it repeats within each size class
//   interleaved           several loops at their own pace          (interleaved.h)
//   fifo lifo lifo-grouped    swapped-out blocks return            (swap_order.h)
//   sequential            ranges follow each other in memory       (sequential.h)
//   markov                the most frequent successor              (markov.h)
//
// Amortised O(log n) per copy, O(1) for a range already known. Memory is what it has when it is
// constructed. One tournament per lane. Pure, not synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/sequential.h"

namespace sealane {

struct PredictLimits {
  size_t transfers_max = size_t{1} << 17;  // distinct ranges known, and copies of history
  double speak_at = 0.5;                   // a score to begin guessing
  double silent_below = 0.35;              // a score to stop guessing
};

class Tournament final : public GuessSource {
 public:
  // How many guesses ahead of a copy still make it a hit.
  static constexpr size_t kLeeway = 4;

  using Score = PredictorScore;  // a hit is one of the first kLeeway guesses

  explicit Tournament(const PredictLimits& limits = {});

  void observe(const Transfer& transfer) override;
  void allow(const Range& mapped) override;
  void forget(const Range& freed) override;
  size_t predict(std::span<Guess> next) override;
  std::string_view leader() const override;

  std::span<const Score> scores() const override { return scores_; }

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  void judge(const Range& requested);
  static size_t place_of(const Range& requested, const Predictor& contestant);
  void elect();
  size_t best_by(double (*rate)(const Score&)) const;
  size_t second_best() const;

  const PredictLimits limits_;
  BufferTable buffers_;
  std::vector<std::unique_ptr<Predictor>> contestants_;
  Sequential* sequential_ = nullptr;  // one of them
  std::vector<Score> scores_;         // of each contestant
  size_t leader_ = kNobody;
  double bytes_mean_ = 0;
};

}  // namespace sealane
