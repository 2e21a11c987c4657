// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What mostly comes after the last one, two, three copies? A table from contexts of each length to
// the copy that followed; the longest context that is known decides. It learns from the first pass,
// one period before Repetition trusts a loop, and where successors vary it keeps to the most
// frequent.
//
// The table is a hash table in which a context that was not confirmed gives way to a new one.
// Cannot: see through noise; tell apart what more than three copies of context decide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/predict/buffer_table.h"
#include "core/predict/predictor.h"
#include "core/predict/zeroed_array.h"

namespace sealane {

class Markov final : public Predictor {
 public:
  Markov(BufferTable& buffers, size_t contexts_max);

  std::string_view name() const override { return "markov"; }
  void observe(const Transfer& transfer) override;
  size_t predict(std::span<Guess> next) const override;
  void forget(const Range& freed) override { buffers_.forget(freed); }

 private:
  static constexpr size_t kOrders = 3;

  struct Symbol {
    BufferId id;
    Direction direction = Direction::to_device;
    bool operator==(const Symbol&) const = default;
  };
  // Hashes of the last 1, 2, 3 copies.
  struct Context {
    std::array<uint64_t, kOrders> hashes{};
    void push(const Symbol& symbol);
  };
  struct Cell {
    Symbol next;
    uint16_t tag = 0;
    uint8_t confidence = 0;  // 0 is empty
  };
  static constexpr uint8_t kConfidenceMax = 3;

  Cell& cell(uint64_t hash) { return cells_[hash & (cells_.size() - 1)]; }
  const Cell& cell(uint64_t hash) const { return cells_[hash & (cells_.size() - 1)]; }
  static uint16_t tag_of(uint64_t hash) { return static_cast<uint16_t>(hash >> 48); }

  void learn(uint64_t hash, const Symbol& next);
  const Cell* expected(const Context& context) const;

  BufferTable& buffers_;
  ZeroedArray<Cell> cells_;  // a power of two
  Context context_;
};

}  // namespace sealane
