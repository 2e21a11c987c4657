// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What came after this the last time? Finds the place in the history that most resembles the
// present, and guesses what followed there.
//
//   history   1 2 3 4 4 3 2 1 1 2 3 4 4 3 2 1 1 2 3
//                  ▲ match                        ▲ head      guess: 4 4 3 2 …
//
// 1. A copy enters the history when its range comes for the second time: what never recurs is noise
//    and cannot come between those that do. (Markov is there to learn from the first pass.)
// 2. While what came is what followed the match, the match moves on with the head: O(1).
// 3. Otherwise the latest occurrences of the copy are compared backwards with the present, and the
//    one with the longest common past becomes the match. Bounded by constants, so O(1) too.
// The match remembers arbitrarily long contexts at no cost, so nested loops (how often did the
// inner one run?), forward-then-backward orders and changes of phase need no special case, and
// nothing has to be known about the period.
//
// Split::by_size keeps one history per size class, of copies to the device alone. There, control
// copies cannot disturb weights even if their buffers recur at random, and loops over blocks of
// different sizes may run at different paces. The streams' guesses are merged by when they are due.
//
// Cannot: tell loops over equally large blocks apart whose interleaving does not repeat (see
// interleaved.h); see a period longer than the history.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/schedule.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

class Repetition final : public Predictor {
 public:
  enum class Split { none, by_size };

  Repetition(BufferTable& buffers, size_t history_max, Split split = Split::none);

  std::string_view name() const override;
  void observe(const Transfer& transfer) override;
  size_t predict(std::span<Guess> next) const override;
  void forget(const Range& freed) override { buffers_.forget(freed); }

 private:
  // Positions count entries from 1; 0 is none. An entry is overwritten after history_max others.
  struct Entry {
    BufferId id;
    Direction direction = Direction::to_device;
    uint32_t same_before = 0;  // the previous occurrence of this copy
    uint32_t previous = 0;     // in its stream
    uint32_t next = 0;
    uint32_t clock = 0;
  };
  static constexpr int kSure = 1024;
  struct Stream {
    uint32_t head = 0;
    uint32_t match = 0;    // where the past resembles the head most
    int accuracy = kSure;  // how often the match was right lately; at first in good faith
  };
  struct Latest {
    uint32_t generation = 0;
    uint32_t at[2] = {0, 0};  // by direction; kOnce if seen but not in the history
  };
  static constexpr uint32_t kOnce = UINT32_MAX;
  static constexpr size_t kStreamsMax = 64;

  bool held(uint32_t position) const;
  Entry& entry(uint32_t position) { return history_[position & (history_.size() - 1)]; }
  const Entry& entry(uint32_t position) const { return history_[position & (history_.size() - 1)]; }
  bool same_copy(uint32_t a, uint32_t b) const;
  size_t stream_of(const Range& range) const;

  void append(const Transfer& transfer, BufferId id, uint32_t same_before);
  void follow(Stream& stream, uint32_t position);
  uint32_t best_match(uint32_t position) const;
  size_t common_past(uint32_t a, uint32_t b) const;
  void restart();

  size_t open_turns(std::span<Turn> turns) const;
  bool advance(Turn& turn) const;

  BufferTable& buffers_;
  const Split split_;
  ZeroedArray<Entry> history_;  // a ring, a power of two
  ZeroedArray<Latest> latest_;  // by slot
  std::array<Stream, kStreamsMax> streams_;
  uint64_t streams_used_ = 0;  // one bit each
  uint32_t newest_ = 0;
  uint32_t clock_ = 0;  // copies of streams that are predictable
};

}  // namespace sealane
