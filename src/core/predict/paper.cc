// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/paper.h"

#include <algorithm>
#include <array>
#include <bit>

namespace sealane {
namespace {

constexpr size_t kPeriodsTried = 4;  // a range may come several times per period

}  // namespace

PaperPredictor::PaperPredictor(size_t transfers_max)
    : buffers_(transfers_max),
      fifo_(buffers_, SwapOrder::Order::fifo),
      lifo_(buffers_, SwapOrder::Order::lifo),
      loads_(std::bit_ceil(transfers_max)),
      latest_(transfers_max) {}

void PaperPredictor::observe(const Transfer& transfer) {
  if (transfer.host.bytes < kSwapBytesMin) return;
  const BufferId id = buffers_.intern(transfer.host);
  if (!id.valid()) return;
  if (transfer.direction == Direction::to_device) {
    judge_swaps(transfer.host);
    load(id);
  }
  fifo_.observe(transfer);
  lifo_.observe(transfer);
}

void PaperPredictor::judge_swaps(const Range& requested) {
  std::array<Guess, 1> guess;
  const auto right = [&](const SwapOrder& order) {
    return order.predict(guess) == 1 && guess[0].host == requested;
  };
  fifo_right_ = right(fifo_) ? fifo_right_ + 1 : 0;
  lifo_right_ = right(lifo_) ? lifo_right_ + 1 : 0;
}

void PaperPredictor::load(BufferId id) {
  ++newest_;
  Latest& latest = latest_[id.slot];
  const bool known = latest.generation == id.generation;
  loads_[newest_ & (loads_.size() - 1)] = {id, known ? latest.at : 0};
  latest = {id.generation, newest_};
  const uint64_t a_period_ago = newest_ - period_;
  if (period_ > 0 && held(a_period_ago) && load_at(a_period_ago).id == id) {
    ++repeated_;
  } else {
    find_period();
  }
}

// The distance to one of the last occurrences: the shortest that fits all the way round, else the
// one that has fitted longest.
void PaperPredictor::find_period() {
  period_ = repeated_ = 0;
  uint64_t same = load_at(newest_).same_before;
  for (size_t i = 0; i < kPeriodsTried && held(same) && !repeats(); ++i) {
    const uint64_t repeated = repeated_with(newest_ - same);
    if (repeated > repeated_) {
      period_ = newest_ - same;
      repeated_ = repeated;
    }
    same = load_at(same).same_before;
  }
}

uint64_t PaperPredictor::repeated_with(uint64_t period) const {
  uint64_t length = 0;
  while (length < period && length < newest_ - period && held(newest_ - period - length) &&
         load_at(newest_ - length).id == load_at(newest_ - period - length).id) {
    ++length;
  }
  return length;
}

size_t PaperPredictor::predict(std::span<Guess> next) {
  if (repeats()) return next_round(next);
  if (fifo_right_ >= kEvidence && fifo_right_ >= lifo_right_) return fifo_.predict(next);
  if (lifo_right_ >= kEvidence) return lifo_.predict(next);
  return 0;
}

size_t PaperPredictor::next_round(std::span<Guess> next) const {
  size_t count = 0;
  for (size_t i = 0; i < next.size(); ++i) {
    const BufferId id = load_at(newest_ - period_ + 1 + i % period_).id;
    if (buffers_.alive(id)) next[count++] = {buffers_.range(id), 1.0f};
  }
  return count;
}

std::string_view PaperPredictor::leader() const {
  if (repeats()) return "repetition";
  if (fifo_right_ >= kEvidence && fifo_right_ >= lifo_right_) return "fifo";
  if (lifo_right_ >= kEvidence) return "lifo";
  return {};
}

void PaperPredictor::forget(const Range& freed) {
  fifo_.forget(freed);
  lifo_.forget(freed);
}

}  // namespace sealane
