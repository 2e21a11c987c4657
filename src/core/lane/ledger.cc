// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/lane/ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace sealane {

Ledger::Ledger(KeyLimits limits) : limits_(limits), reserved_(kWindow / 64) {}

Result<Position> Ledger::reserve(uint64_t number, uint64_t blocks) {
  if (number < head_) return usage_error(concat("position ", number, " is already used"));
  if (number - head_ >= kWindow) {
    return usage_error(concat("position ", number, " is too far ahead of ", head_));
  }
  if (reserved_bit(number)) return usage_error(concat("position ", number, " is reserved"));
  if (number >= limits_.messages) {
    return crypto_error(
        concat("the key's limit of ", limits_.messages, " messages is reached: re-key the lane"));
  }
  if (blocks > blocks_left()) {
    return crypto_error(concat("the key's limit of ", limits_.blocks * kBlockBytes,
                               " bytes is reached: re-key the lane"));
  }
  set_reserved(number, true);
  reserved_blocks_ += blocks;
  return Position(number, epoch_, blocks);
}

Result<Position> Ledger::reserve_next(uint64_t blocks) {
  uint64_t number = std::max(head_, lowest_free_hint_);
  while (number - head_ < kWindow && reserved_bit(number)) ++number;
  auto position = reserve(number, blocks);
  if (position) lowest_free_hint_ = number + 1;
  return position;
}

Status Ledger::publish(Position position) {
  SEALANE_CHECK(std::exchange(position.live_, false), "position used twice");
  if (position.epoch_ != epoch_) {
    return crypto_error(concat("position ", position.number_, " belongs to key epoch ",
                               position.epoch_.number, ", the lane is at ", epoch_.number));
  }
  if (position.number_ != head_) {
    return crypto_error(
        concat("position ", position.number_, " out of order: the lane is at ", head_));
  }
  reserved_blocks_ -= position.blocks_;
  published_blocks_ += position.blocks_;
  set_reserved(head_, false);
  ++head_;
  return {};
}

void Ledger::give_back(Position position) {
  SEALANE_CHECK(std::exchange(position.live_, false), "position given back twice");
  if (position.epoch_ != epoch_) return;
  reserved_blocks_ -= position.blocks_;
  if (position.number_ < head_) return;
  set_reserved(position.number_, false);
  lowest_free_hint_ = std::min(lowest_free_hint_, position.number_);
}

Status Ledger::follow(uint64_t head) {
  if (head < head_) {
    return crypto_error(concat("the lane went back from position ", head_, " to ", head));
  }
  advance_to(head);
  return {};
}

void Ledger::rotate() {
  ++epoch_.number;
  std::fill(reserved_.begin(), reserved_.end(), 0);
  reserved_count_ = reserved_blocks_ = published_blocks_ = head_ = lowest_free_hint_ = 0;
}

PositionState Ledger::state(uint64_t number) const {
  if (number < head_) return PositionState::published_or_burnt;
  const bool reserved = number - head_ < kWindow && reserved_bit(number);
  return reserved ? PositionState::reserved : PositionState::free;
}

uint64_t Ledger::messages_left() const {
  const uint64_t used = head_ + reserved_count_;
  return limits_.messages > used ? limits_.messages - used : 0;
}

bool Ledger::reserved_bit(uint64_t number) const {
  const uint64_t bit = number % kWindow;
  return (reserved_[bit / 64] >> (bit % 64) & 1) != 0;
}

void Ledger::set_reserved(uint64_t number, bool reserved) {
  if (reserved_bit(number) == reserved) return;
  const uint64_t bit = number % kWindow;
  reserved_[bit / 64] ^= uint64_t{1} << (bit % 64);
  reserved ? ++reserved_count_ : --reserved_count_;
}

void Ledger::advance_to(uint64_t head) {
  const uint64_t cleared_end = std::min(head, head_ + kWindow);
  for (uint64_t number = head_; number < cleared_end; ++number) set_reserved(number, false);
  head_ = head;
}

}  // namespace sealane
