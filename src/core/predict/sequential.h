// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranges that follow each other in memory: a model being loaded. The next range begins where the
// last one ended, or one stride further, and is as long as the last. Up to kStreamsMax such streams
// may be interleaved; their guesses are merged by when they are due (schedule.h).
//
// 1. A copy at the place a stream expects continues it, also with another length.
// 2. A copy near a young stream, with the same length, sets its stride (up, down, with holes).
// 3. Any other copy starts a stream in place of the one that is least worth keeping.
// A stream guesses once it has been continued as expected.
//
// The only predictor that guesses memory no copy has touched. It keeps to what allow() says is
// mapped: nothing behind the end of an allocation is ever guessed.
// Cannot: lengths that vary from copy to copy (the place is right, the length is not).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/predict/mapped_ranges.h"
#include "core/predict/predictor.h"
#include "core/predict/schedule.h"

namespace sealane {

class Sequential final : public Predictor {
 public:
  std::string_view name() const override { return "sequential"; }
  void observe(const Transfer& transfer) override;
  size_t predict(std::span<Guess> next) const override;
  void allow(const Range& mapped);
  void forget(const Range& freed) override;

 private:
  static constexpr size_t kStreamsMax = 8;
  static constexpr uint32_t kConfidenceMax = 7;

  struct Stream {
    Range last;
    uint64_t stride = 0;  // modulo 2^64, so it may go down
    uint32_t clock = 0;
    uint32_t gap = 1;
    uint32_t confidence = 0;
  };

  void go_on(Stream& stream, const Range& range);
  Stream* expecting(const Range& range);
  Stream* young_near(const Range& range);
  Stream& least_worth();

  std::array<Stream, kStreamsMax> streams_;
  MappedRanges mapped_;
  uint32_t clock_ = 0;
};

}  // namespace sealane
