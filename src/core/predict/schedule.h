// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Several sequences that advance at their own pace, merged into one: each says how many copies
// after its latest one the next is due, and the sequence whose turn comes first goes first. One
// that is late may come any moment, but behind those that are on time; one that should have gone on
// long ago has ended, or pauses, and is left out.
//
// Time is counted in copies, modulo 2^32; its owner chooses the scale.
#pragma once

#include <cstdint>
#include <span>

namespace sealane {

constexpr bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// Where one sequence stands and when its next copy is due.
struct Turn {
  uint32_t at = 0;      // a position, as its owner counts them
  uint32_t stream = 0;  // which sequence
  uint32_t due = 0;
  uint32_t late = 0;
  bool ended = false;  // its owner knows no further copy

  // What was due before `now` is due now, and late.
  void expect_from(uint32_t now) {
    if (!is_before(due, now)) return;
    late = now - due;
    due = now;
  }
};

// `gap` is how long the sequence has usually waited for this copy.
constexpr bool is_overdue(uint32_t due, uint32_t gap, uint32_t now, uint32_t patience = 16) {
  return is_before(due + 4 * gap + patience, now);
}

// The turn that comes first, or nullptr if all have ended.
inline Turn* soonest(std::span<Turn> turns) {
  Turn* best = nullptr;
  for (Turn& turn : turns) {
    if (turn.ended) continue;
    if (best == nullptr || is_before(turn.due, best->due) ||
        (turn.due == best->due && turn.late < best->late)) {
      best = &turn;
    }
  }
  return best;
}

}  // namespace sealane
