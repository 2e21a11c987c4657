// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the PipeLLM paper describes (arXiv 2411.03357), for the policy `pipellm`: swaps are told
// from control traffic by size; a pattern is recognised and followed.
//   repetition   the last copies to the device repeat with an exact period, once all the way round
//   fifo, lifo   the last kEvidence blocks that returned were the oldest, or newest, swapped out
// A copy that does not fit ends a pattern at once. Written from the description, not from the
// prototype, which has no way back from a wrong guess. Pure, not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/swap_order.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

class PaperPredictor final : public GuessSource {
 public:
  static constexpr uint64_t kSwapBytesMin = 128_KiB;  // smaller copies are control traffic

  explicit PaperPredictor(size_t transfers_max = size_t{1} << 17);

  void observe(const Transfer& transfer) override;
  void forget(const Range& freed) override;
  size_t predict(std::span<Guess> next) override;
  std::string_view leader() const override;

 private:
  static constexpr uint64_t kEvidence = 4;

  struct Load {
    BufferId id;
    uint64_t same_before = 0;  // the previous load of this range, 0 if none
  };
  struct Latest {
    uint32_t generation = 0;
    uint64_t at = 0;
  };

  bool repeats() const { return period_ > 0 && repeated_ >= period_; }
  bool held(uint64_t position) const { return position != 0 && newest_ - position < loads_.size(); }
  const Load& load_at(uint64_t position) const { return loads_[position & (loads_.size() - 1)]; }
  void judge_swaps(const Range& requested);
  void load(BufferId id);
  void find_period();
  uint64_t repeated_with(uint64_t period) const;
  size_t next_round(std::span<Guess> next) const;

  BufferTable buffers_;
  SwapOrder fifo_;
  SwapOrder lifo_;
  ZeroedArray<Load> loads_;     // copies to the device, a ring, a power of two
  ZeroedArray<Latest> latest_;  // by slot
  uint64_t newest_ = 0;
  uint64_t period_ = 0;    // 0 is none
  uint64_t repeated_ = 0;  // copies in a row that equal the one a period before
  uint64_t fifo_right_ = 0;
  uint64_t lifo_right_ = 0;
};

}  // namespace sealane
