// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/swap_order.h"

#include <bit>

#include "core/predict/schedule.h"

namespace sealane {
namespace {

constexpr size_t kGroupBlocksMax = 1024;  // longer ones are cut when searched for their start
constexpr float kConfidence = 0.9f;       // the order is all we know; the tournament knows how good

}  // namespace

SwapOrder::SwapOrder(BufferTable& buffers, Order order)
    : buffers_(buffers), order_(order), blocks_(buffers.capacity()) {}

std::string_view SwapOrder::name() const {
  switch (order_) {
    case Order::fifo:
      return "fifo";
    case Order::lifo:
      return "lifo";
    case Order::lifo_grouped:
      return "lifo-grouped";
  }
  return {};
}

void SwapOrder::observe(const Transfer& transfer) {
  const BufferId id = buffers_.intern(transfer.host);
  if (!id.valid()) return;
  ++clock_;
  if (transfer.direction == Direction::to_host) {
    swap_out(id, transfer.host);
  } else if (classes_[size_class_of(transfer.host)].newest != kNone && blocks_[id.slot].linked) {
    swap_in(id);
  }
}

void SwapOrder::swap_out(BufferId id, const Range& range) {
  Block& block = blocks_[id.slot];
  if (block.linked) unlink(id.slot);
  const auto size_class = static_cast<uint8_t>(size_class_of(range));
  Class& list = classes_[size_class];
  classes_used_ |= uint64_t{1} << size_class;
  const bool starts_group = list.newest == kNone || clock_ - list.clock_out > kGroupGap + 1;
  block = {id.generation, list.newest, kNone, clock_, size_class, true, starts_group};
  (list.newest == kNone ? list.oldest : blocks_[list.newest].newer) = id.slot;
  list.newest = id.slot;
  list.clock_out = clock_;
  if (starts_group) {
    list.newest_start = id.slot;
    list.resume = kNone;
  }
}

void SwapOrder::swap_in(BufferId id) {
  const Block block = blocks_[id.slot];
  Class& list = classes_[block.size_class];
  if (block.generation == id.generation) {
    for (uint64_t left = classes_used_; left != 0; left &= left - 1) {
      Class& other = classes_[std::countr_zero(left)];
      if (&other != &list && other.newest != kNone && sooner(other, list)) ++other.passed_over;
    }
    list.passed_over = 0;
    // The rest of its group comes next. If it was not the first, the run was two groups.
    list.resume = block.newer;
    if (block.newer != kNone && !block.starts_group) {
      const bool in_newest_group = !is_before(block.clock, blocks_[list.newest_start].clock);
      blocks_[block.newer].starts_group = true;
      if (in_newest_group) list.newest_start = block.newer;
    }
    list.clock_out = clock_ - kGroupGap - 1;  // what goes out from now on is another group
  }
  unlink(id.slot);
  trim(list);
}

void SwapOrder::unlink(uint32_t slot) {
  Block& block = blocks_[slot];
  Class& list = classes_[block.size_class];
  (block.older == kNone ? list.oldest : blocks_[block.older].newer) = block.newer;
  (block.newer == kNone ? list.newest : blocks_[block.newer].older) = block.older;
  if (block.starts_group && block.newer != kNone) blocks_[block.newer].starts_group = true;
  if (list.resume == slot) list.resume = block.newer;
  if (list.newest_start == slot) {
    list.newest_start = block.newer != kNone ? block.newer : start_of_group(list.newest);
  }
  block.linked = false;
}

// Freed blocks at the ends of the list would be stepped over by every guess.
void SwapOrder::trim(Class& list) {
  while (list.oldest != kNone && !alive(list.oldest)) unlink(list.oldest);
  while (list.newest != kNone && !alive(list.newest)) unlink(list.newest);
}

uint32_t SwapOrder::start_of_group(uint32_t slot) const {
  for (size_t i = 0; i < kGroupBlocksMax && slot != kNone; ++i) {
    if (blocks_[slot].starts_group || blocks_[slot].older == kNone) break;
    slot = blocks_[slot].older;
  }
  return slot;
}

void SwapOrder::forget(const Range& freed) {
  buffers_.forget(freed);
  for (Class& list : classes_) trim(list);
}

size_t SwapOrder::predict(std::span<Guess> next) const {
  std::array<Cursor, kClasses> cursors;
  uint64_t open = 0;
  for (uint64_t left = classes_used_; left != 0; left &= left - 1) {
    const auto index = static_cast<size_t>(std::countr_zero(left));
    if (classes_[index].newest == kNone || classes_[index].passed_over >= kPatience) continue;
    cursors[index] = first(classes_[index]);
    open |= uint64_t{1} << index;
  }
  size_t count = 0;
  for (size_t steps = 8 * next.size(); steps > 0 && open != 0 && count < next.size(); --steps) {
    auto best = static_cast<size_t>(std::countr_zero(open));
    for (uint64_t left = open & (open - 1); left != 0; left &= left - 1) {
      const auto other = static_cast<size_t>(std::countr_zero(left));
      const bool other_first =
          order_ == Order::fifo
              ? is_before(blocks_[cursors[other].at].clock, blocks_[cursors[best].at].clock)
              : is_before(blocks_[cursors[best].at].clock, blocks_[cursors[other].at].clock);
      if (other_first) best = other;
    }
    Cursor& cursor = cursors[best];
    const BufferId id{cursor.at, blocks_[cursor.at].generation};
    if (buffers_.alive(id)) next[count++] = {buffers_.range(id), kConfidence};
    advance(cursor);
    if (cursor.at == kNone) open &= ~(uint64_t{1} << best);
  }
  return count;
}

SwapOrder::Cursor SwapOrder::first(const Class& list) const {
  switch (order_) {
    case Order::fifo:
      return {list.oldest, kNone};
    case Order::lifo:
      return {list.newest, kNone};
    case Order::lifo_grouped:
      break;
  }
  const uint32_t at = list.resume != kNone ? list.resume : list.newest_start;
  return {at, at};
}

void SwapOrder::advance(Cursor& cursor) const {
  const Block& block = blocks_[cursor.at];
  const bool group_goes_on = block.newer != kNone && !blocks_[block.newer].starts_group;
  if (order_ == Order::fifo || (order_ == Order::lifo_grouped && group_goes_on)) {
    cursor.at = block.newer;
  } else if (order_ == Order::lifo) {
    cursor.at = block.older;
  } else {
    cursor.at = cursor.group_start = start_of_group(blocks_[cursor.group_start].older);
  }
}

// Would a guess of `a` stand before one of `b`?
bool SwapOrder::sooner(const Class& a, const Class& b) const {
  if (order_ == Order::fifo) return is_before(blocks_[a.oldest].clock, blocks_[b.oldest].clock);
  return is_before(blocks_[b.newest].clock, blocks_[a.newest].clock);
}

}  // namespace sealane
