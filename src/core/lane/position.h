// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A position is the right to seal one message under one key. It is minted by a Ledger, can be moved
// but not copied, and is consumed by what uses it: a copy does not compile, and sealing with one
// that was moved from aborts. A position that dies unused stays reserved for ever, which is the
// safe way to lose one.
#pragma once

#include <cstdint>
#include <utility>

namespace sealane {

// Which key of a lane; grows by one with every rotation.
struct Epoch {
  uint32_t number = 0;
  auto operator<=>(const Epoch&) const = default;
};

class Position {
 public:
  Position(Position&& other) noexcept
      : number_(other.number_),
        blocks_(other.blocks_),
        epoch_(other.epoch_),
        live_(std::exchange(other.live_, false)) {}
  Position& operator=(Position&& other) noexcept {
    number_ = other.number_;
    blocks_ = other.blocks_;
    epoch_ = other.epoch_;
    live_ = std::exchange(other.live_, false);
    return *this;
  }
  Position(const Position&) = delete;
  Position& operator=(const Position&) = delete;

  uint64_t number() const { return number_; }
  Epoch epoch() const { return epoch_; }
  bool live() const { return live_; }  // false once moved from

 private:
  friend class Ledger;
  Position(uint64_t number, Epoch epoch, uint64_t blocks)
      : number_(number), blocks_(blocks), epoch_(epoch) {}

  uint64_t number_;
  uint64_t blocks_;  // charged against the key's limit
  Epoch epoch_;
  bool live_ = true;
};

}  // namespace sealane
