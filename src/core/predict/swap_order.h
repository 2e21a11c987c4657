// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks that were swapped out come back. A copy to the host makes its range a candidate for a copy
// to the device; the order in which candidates return is the predictor's idea:
//   fifo           oldest first: KV swapped layer by layer
//   lifo           newest first: KV swapped request by request
//   lifo-grouped   the newest request first, but its blocks in the order they went out
//
// Candidates are kept in one list per size class, so that what goes to the host and never returns
// (sampled tokens, logits) does not stand in front of what does: a class that was passed over
// kPatience times in a row is left out until one of its blocks returns.
//
// A group is a run of copies to the host with at most kGroupGap others in between. If a return
// shows that a run was two requests, it is cut there.
//
// Cannot: blocks of one size class of which only some return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

class SwapOrder final : public Predictor {
 public:
  enum class Order { fifo, lifo, lifo_grouped };

  SwapOrder(BufferTable& buffers, Order order);

  std::string_view name() const override;
  void observe(const Transfer& transfer) override;
  size_t predict(std::span<Guess> next) const override;
  void forget(const Range& freed) override;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kClasses = 64;
  static constexpr uint32_t kPatience = 4;
  static constexpr uint32_t kGroupGap = 4;

  struct Block {  // linked into the list of its class while swapped out
    uint32_t generation = 0;
    uint32_t older = kNone;
    uint32_t newer = kNone;
    uint32_t clock = 0;  // when it went out
    uint8_t size_class = 0;
    bool linked = false;
    bool starts_group = false;
  };
  struct Class {
    uint32_t oldest = kNone;
    uint32_t newest = kNone;
    uint32_t newest_start = kNone;  // first block of the newest group
    uint32_t resume = kNone;        // the block that went out after the one that just returned
    uint32_t clock_out = 0;
    uint32_t passed_over = 0;
  };
  // Where the walk through one class stands.
  struct Cursor {
    uint32_t at;
    uint32_t group_start;
  };

  void swap_out(BufferId id, const Range& range);
  void swap_in(BufferId id);
  void unlink(uint32_t slot);
  void trim(Class& list);
  uint32_t start_of_group(uint32_t slot) const;
  bool alive(uint32_t slot) const { return buffers_.alive({slot, blocks_[slot].generation}); }

  Cursor first(const Class& list) const;
  void advance(Cursor& cursor) const;
  bool sooner(const Class& a, const Class& b) const;

  BufferTable& buffers_;
  const Order order_;
  ZeroedArray<Block> blocks_;  // by slot
  std::array<Class, kClasses> classes_;
  uint64_t classes_used_ = 0;  // one bit each
  uint32_t clock_ = 0;
};

}  // namespace sealane
