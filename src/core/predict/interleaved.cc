// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/interleaved.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace sealane {

void TurnOrder::observe(uint32_t number) {
  Cell& cell = cells_[context_];
  if (cell.number == number) {
    cell.confidence = std::min<uint8_t>(cell.confidence + 1, kSure);
  } else {
    cell = {static_cast<uint8_t>(number), 1};
  }
  context_ = push(context_, number);
}

uint32_t TurnOrder::expected(Context context) const {
  const Cell& cell = cells_[context];
  return cell.confidence == kSure ? cell.number : kNumbers;
}

Interleaved::Interleaved(BufferTable& buffers, size_t history_max)
    : buffers_(buffers), recent_(std::bit_ceil(history_max)), nodes_(buffers.capacity()) {
  SEALANE_CHECK(recent_.size() > size_t{4} * kWindow, "history out of range");
}

void Interleaved::observe(const Transfer& transfer) {
  if (transfer.direction == Direction::to_host) return;
  const BufferId id = buffers_.intern(transfer.host);
  if (!id.valid()) return;
  Node& here = node(id);
  if (here.generation != id.generation) here = {id.generation, 0, {}, {}, 0, 0};
  ++newest_;
  if (here.before.valid()) confirm(here);
  if (here.before.valid() && !claim(id, here)) here.before = {};
  if (!here.before.valid() && here.at != 0) choose_before(id, here);
  recent_[newest_ & (recent_.size() - 1)] = id;
  here.at = newest_;
  move_head(id, here);
}

void Interleaved::confirm(Node& here) {
  const uint32_t gap = newest_ - node(here.before).at;
  if (buffers_.alive(here.before) && gap <= kWindow) {
    here.gap = static_cast<uint16_t>((3 * here.gap + gap * kScale) / 4);
    here.confidence = std::min<uint16_t>(here.confidence + 1, kConfidenceMax);
  } else if (here.confidence > 1) {
    here.confidence -= 2;
  } else {
    here.before = {};
  }
}

void Interleaved::choose_before(BufferId id, Node& here) {
  // The window before the last time must still be in the ring.
  if (newest_ - here.at + kWindow >= recent_.size()) return;
  here.before = {};
  here.confidence = 0;
  Node best = here;
  uint32_t best_cost = UINT32_MAX;
  for (uint32_t now = 1; now <= kWindow && now < newest_; ++now) {
    const BufferId candidate = recent(newest_ - now);
    if (candidate == id) break;  // further back lies the previous round
    for (uint32_t then = 1; then <= kWindow && then < here.at; ++then) {
      if (recent(here.at - then) != candidate) continue;
      const uint32_t cost = std::max(now, then) * kWindow + std::min(now, then);
      here.before = candidate;
      here.gap = static_cast<uint16_t>(now * kScale);
      here.confidence = 1;
      if (cost < best_cost && claim(id, here)) {
        best_cost = cost;
        best = here;
      }
      break;
    }
  }
  here = best;
}

// A range leads to one other. Of two that keep coming behind it the nearer has the better claim:
// the farther one is a later step, or of another loop. A newcomer must be very much nearer.
bool Interleaved::claim(BufferId id, const Node& claimant) {
  if (!buffers_.alive(claimant.before)) return false;
  const BufferId rival = linked_after(claimant.before);
  if (rival.valid() && rival != id && node(rival).confidence >= kConfident) {
    const bool newcomer = claimant.confidence < kConfident;
    const uint32_t gap = node(rival).gap;
    if (newcomer ? gap < 4 * claimant.gap : gap <= claimant.gap) return false;
  }
  node(claimant.before).after = id;
  return true;
}

// The loop this copy belongs to goes on from here.
void Interleaved::move_head(BufferId id, const Node& here) {
  Head& head = head_for(id, here);
  const bool goes_on = head.id.valid() && head.id == here.before;
  if (!goes_on && !linked_after(id).valid()) return;
  head = {id, newest_};
  order_.observe(static_cast<uint32_t>(&head - heads_.data()));
}

// Its loop's, else the one that has rested longest.
Interleaved::Head& Interleaved::head_for(BufferId id, const Node& here) {
  Head* oldest = &heads_[0];
  for (Head& head : heads_) {
    if (head.id == id || (head.id.valid() && head.id == here.before)) return head;
    if (is_before(head.at, oldest->at)) oldest = &head;
  }
  return *oldest;
}

// What follows `id`, if both sides of the link agree.
BufferId Interleaved::linked_after(BufferId id) const {
  const BufferId after = node(id).after;
  if (!buffers_.alive(after) || node(after).generation != after.generation) return {};
  return node(after).before == id ? after : BufferId{};
}

BufferId Interleaved::expected_after(BufferId id) const {
  const BufferId after = linked_after(id);
  return after.valid() && node(after).confidence > 0 ? after : BufferId{};
}

size_t Interleaved::predict(std::span<Guess> next) const {
  std::array<Turn, kHeadsMax> turns;
  for (size_t i = 0; i < kHeadsMax; ++i) turns[i].ended = !open_turn(heads_[i], turns[i]);
  TurnOrder::Context context = order_.context();
  size_t count = 0;
  while (count < next.size()) {
    const uint32_t number = order_.expected(context);
    Turn* turn = number < kHeadsMax && !turns[number].ended ? &turns[number] : soonest(turns);
    if (turn == nullptr) break;
    const BufferId id{turn->at, nodes_[turn->at].generation};
    next[count++] = {buffers_.range(id), confidence_of(node(id).confidence, kConfidenceMax)};
    context = TurnOrder::push(context, static_cast<uint32_t>(turn - turns.data()));
    const BufferId after = expected_after(id);
    turn->ended = !after.valid();
    if (turn->ended) continue;
    turn->at = after.slot;
    turn->due += node(after).gap;
  }
  return count;
}

bool Interleaved::open_turn(const Head& head, Turn& turn) const {
  if (!buffers_.alive(head.id)) return false;
  const BufferId after = expected_after(head.id);
  if (!after.valid()) return false;
  turn.at = after.slot;
  turn.due = head.at * kScale + node(after).gap;
  const uint32_t now = (newest_ + 1) * kScale;
  if (is_overdue(turn.due, node(after).gap, now, kWindow * kScale)) return false;
  turn.expect_from(now);
  return true;
}

}  // namespace sealane
