// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// mbarrier objects: a word of shared memory. Bits 0-19: arrivals the phase still waits for, 20-39:
// arrivals of a phase, 40-63: phases that are over. A state is the word as it was before the
// arrival. The block's worker is the only one that reads or writes it.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"

namespace sealane::ptx {
namespace {

constexpr uint64_t kCountMax = (uint64_t{1} << 20) - 1;

uint64_t pending(uint64_t word) { return word & kCountMax; }
uint64_t expected(uint64_t word) { return word >> 20 & kCountMax; }
uint64_t phase(uint64_t word) { return word >> 40; }
uint64_t word_of(uint64_t phases, uint64_t wants, uint64_t waits) {
  return phases << 40 | wants << 20 | waits;
}

// False: more arrive than the phase waits for.
bool arrive(uint64_t& word, uint64_t count, bool drops) {
  if (count > pending(word)) return false;
  const uint64_t wants = drops ? expected(word) - std::min(count, expected(word)) : expected(word);
  const uint64_t left = pending(word) - count;
  word = left > 0 ? word_of(phase(word), wants, left) : word_of(phase(word) + 1, wants, wants);
  return true;
}

// For the checks: who arrives lets go of what it did, who waits gets to know it.
void note_order(Warp& w, MbarrierOp op, const uint8_t* memory) {
  Checker* checker = w.block->checker.get();
  if (checker == nullptr) return;
  const auto at = reinterpret_cast<uint64_t>(memory);
  if (op == MbarrierOp::wait)
    checker->acquire(w.index, at);
  else
    checker->release(w.index, at);
}

}  // namespace

// mode: MbarrierOp; the barrier's address; b: count, state or (signs) parity; d: state, or the
// predicate of a wait.
Flow op_mbarrier(Warp& w, const Instr& in, uint32_t mask) {
  const auto op = static_cast<MbarrierOp>(in.mode);
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  uint32_t over = 0;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    if (op == MbarrierOp::pending) {
      w.to<uint32_t>(in.d)[i] = static_cast<uint32_t>(pending(w.from<uint64_t>(in.b)[i]));
      continue;
    }
    uint8_t* memory = lane_memory(w, in, i, in.space, addresses[i], 8);
    if (memory == nullptr) return Flow::fault;
    uint64_t word = 0;
    std::memcpy(&word, memory, 8);
    note_order(w, op, memory);
    const uint64_t before = word;
    if (op == MbarrierOp::wait) {
      const uint64_t now = phase(word);
      const bool ended = in.signs ? (now & 1) != (w.from<uint32_t>(in.b)[i] & 1)
                                  : now != phase(w.from<uint64_t>(in.b)[i]);
      over |= uint32_t{ended} << i;
      continue;
    }
    const uint64_t count = w.from<uint32_t>(in.b)[i] & kCountMax;
    if (op == MbarrierOp::init) word = word_of(0, count, count);
    if (op == MbarrierOp::inval) word = 0;
    if (op == MbarrierOp::arrive || op == MbarrierOp::drop) {
      if (!arrive(word, count, op == MbarrierOp::drop)) {
        w.grid->fail(Fault::illegal_instruction, w, &in, 1u << i,
                     "more arrivals than the barrier waits for", &addresses[i]);
        return Flow::fault;
      }
      w.to<uint64_t>(in.d)[i] = before;
    }
    std::memcpy(memory, &word, 8);
  }
  if (op == MbarrierOp::wait) {
    w.set_predicate(in.d, over, mask);
    if ((mask & ~over) != 0) note_spin(w);
  }
  return Flow::next;
}

}  // namespace sealane::ptx
