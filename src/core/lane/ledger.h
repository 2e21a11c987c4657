// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Knows the state of every position of a lane under its current key.
//
//   free ──reserve──▶ reserved ──publish──▶ published
//    ▲                   │  │
//    └────give_back──────┘  └──follow past it──▶ burnt
//
// Positions reach the wire in order and without gaps, because the receiver counts by itself: the
// head is the only position that can be published. On our own lanes the ledger mints them
// (reserve_next); on a GPU lane the driver does, and follow() tells the ledger.
//
// Fails before a limit is passed, never after: reserve() refuses what the key may not carry.
// Pure, not synchronised, allocates only when constructed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "core/lane/limits.h"
#include "core/lane/position.h"

namespace sealane {

enum class PositionState { free, reserved, published_or_burnt };

class Ledger {
 public:
  // How far ahead of the head positions can be reserved.
  static constexpr uint64_t kWindow = 4096;

  explicit Ledger(KeyLimits limits = {});

  // `blocks` as blocks_of() counts them. A crypto error if the key's limits would be passed, a
  // usage error if the position is taken, behind the head or beyond the window.
  Result<Position> reserve(uint64_t number, uint64_t blocks);
  Result<Position> reserve_next(uint64_t blocks);  // the lowest free position

  // Call before the first byte is exposed. A crypto error, and nothing changes, unless the position
  // is the head and of this epoch.
  Status publish(Position position);

  // The ciphertext made with this position, if any, was never exposed and has been wiped. A
  // position of an earlier epoch, or one the lane has passed, is forgotten.
  void give_back(Position position);

  // Others used the lane up to but not including `head`. Reserved positions before it are burnt.
  // A crypto error if that is behind our head: the counters disagree.
  Status follow(uint64_t head);

  // A new key: all positions are free again, those still held belong to the past.
  void rotate();

  uint64_t head() const { return head_; }
  Epoch epoch() const { return epoch_; }
  PositionState state(uint64_t number) const;
  uint64_t reserved_count() const { return reserved_count_; }
  // Messages and blocks the key can still carry beyond what is published or reserved.
  uint64_t messages_left() const;
  uint64_t blocks_left() const { return limits_.blocks - published_blocks_ - reserved_blocks_; }

 private:
  bool reserved_bit(uint64_t number) const;
  void set_reserved(uint64_t number, bool reserved);
  void advance_to(uint64_t head);

  KeyLimits limits_;
  std::vector<uint64_t> reserved_;  // one bit per position, a ring of kWindow
  uint64_t reserved_count_ = 0;
  uint64_t reserved_blocks_ = 0;
  uint64_t published_blocks_ = 0;
  uint64_t head_ = 0;
  uint64_t lowest_free_hint_ = 0;  // no position before it is free
  Epoch epoch_;
};

}  // namespace sealane
