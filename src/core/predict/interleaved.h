// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Several loops at once, each at its own pace: a1 b1 a2 a3 b2 a4 … The joint sequence does not
// repeat (or only after the product of the lengths), but within a loop every range has one that
// always comes shortly before it.
//
// 1. Learn: of the copies in the window before this range now and in the window before it the last
//    time, the one that was near both times becomes its `before`. It is confirmed whenever it is
//    in the window again, and given up when it keeps missing or another range has the better claim.
// 2. Heads: the latest copy of each loop. A loop keeps its head's number while it goes on.
// 3. Whose turn is it? The order of the heads' numbers is learned as a sequence of its own (a a a b
// b
//    and again); where that is unknown, whoever is due first by its usual gap (schedule.h).
// 4. Guess: follow the links from the heads, in that order.
// Noise, recurring or not, finds no stable partner, so it neither gets a link nor breaks one.
//
// Cannot: loops in which a range comes more than once per period (forward-then-backward): a range
// has one `before`. Loops so slow that more than kWindow other copies lie between two steps. Loops
// little longer than the window that keep almost the same pace: partners drift apart too slowly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/schedule.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

// Which of a few comes next, by what followed the last kOrder ones.
class TurnOrder {
 public:
  static constexpr uint32_t kNumbers = 8;

  TurnOrder() : cells_(kContexts) {}

  using Context = uint32_t;
  Context context() const { return context_; }
  static Context push(Context context, uint32_t number) {
    return (context << kBits | number) % kContexts;
  }
  void observe(uint32_t number);
  // kNumbers if unknown.
  uint32_t expected(Context context) const;

 private:
  static constexpr uint32_t kBits = 3;
  static constexpr uint32_t kOrder = 5;
  static constexpr uint32_t kContexts = 1u << (kBits * kOrder);
  // So many times in a row. More than a window holds, so that a loop which goes on for a whole
  // window before another moves does not pass for the only one.
  static constexpr uint8_t kSure = 16;

  struct Cell {
    uint8_t number = 0;
    uint8_t confidence = 0;
  };

  ZeroedArray<Cell> cells_;
  Context context_ = 0;
};

class Interleaved final : public Predictor {
 public:
  Interleaved(BufferTable& buffers, size_t history_max);

  std::string_view name() const override { return "interleaved"; }
  void observe(const Transfer& transfer) override;
  size_t predict(std::span<Guess> next) const override;
  void forget(const Range& freed) override { buffers_.forget(freed); }

 private:
  struct Node {
    uint32_t generation = 0;
    uint32_t at = 0;  // position of its latest copy
    BufferId before;
    BufferId after;
    uint16_t gap = 0;         // copies from `before` to this, a mean, times kScale
    uint16_t confidence = 0;  // 0..kConfidenceMax
  };
  struct Head {
    BufferId id;
    uint32_t at = 0;
  };
  static constexpr uint32_t kWindow = 16;
  static constexpr uint32_t kScale = 16;
  static constexpr size_t kHeadsMax = TurnOrder::kNumbers;
  static constexpr uint16_t kConfidenceMax = 7;
  static constexpr uint16_t kConfident = 2;  // to hold its place against a rival

  Node& node(BufferId id) { return nodes_[id.slot]; }
  const Node& node(BufferId id) const { return nodes_[id.slot]; }
  BufferId recent(uint32_t position) const { return recent_[position & (recent_.size() - 1)]; }

  void confirm(Node& here);
  void choose_before(BufferId id, Node& here);
  bool claim(BufferId id, const Node& claimant);
  void move_head(BufferId id, const Node& here);
  Head& head_for(BufferId id, const Node& here);
  BufferId linked_after(BufferId id) const;
  BufferId expected_after(BufferId id) const;
  bool open_turn(const Head& head, Turn& turn) const;

  BufferTable& buffers_;
  ZeroedArray<BufferId> recent_;  // copies to the device, a ring, a power of two
  ZeroedArray<Node> nodes_;       // by slot
  std::array<Head, kHeadsMax> heads_;
  TurnOrder order_;  // of the heads
  uint32_t newest_ = 0;
};

}  // namespace sealane
