// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the lanes of one access find their memory: their addresses are looked at together first,
// since all the same, or one behind the other, is one access of the host.
//
// Used by the worker that runs the warp's block. Memory may be written by other workers, other GPUs
// and the host meanwhile, as on a GPU: that is the program's business, so tsan does not watch.
#pragma once

#include <cstdint>

#include "ptx/exec/warp.h"

#if defined(__SANITIZE_THREAD__)
#define SEALANE_UNWATCHED __attribute__((no_sanitize_thread))
#else
#define SEALANE_UNWATCHED
#endif

namespace sealane::ptx {

// The common case first: where the row of a full warp is, its bytes counted. One look at the
// addresses and one at the bounds; nullptr: not such a row, or not inside of its memory, or the
// space has other rules, or somebody checks accesses: look closer.
uint8_t* whole_row(Warp& w, const Instr& in, uint32_t mask, uint32_t bytes);

// How the lanes of a mask access memory.
struct Pattern {
  uint64_t addresses[kLanes];
  unsigned first = 0;  // lane
  unsigned last = 0;
  bool same = false;
  bool row = false;  // one behind the other, `stride` apart
};

void classify(Pattern& p, uint32_t mask, uint32_t stride);

// The space all lanes mean, and their addresses within it, if a generic access has one.
Space common_space(Pattern& p, const Instr& in, uint32_t mask);

// Where a row or a single place is in one piece, nullptr: look at each lane.
uint8_t* together(Warp& w, const Pattern& p, Space space, uint32_t bytes);

// Lanes' places in one piece of memory that all of them are inside of: lane i's is at
// base + addresses[i] + i * lane_bytes.
struct Spread {
  bool found = false;
  uintptr_t base = 0;  // a number: it may lie outside of any memory
  size_t lane_bytes = 0;

  uint8_t* at(uint64_t address, unsigned lane) const {
    return reinterpret_cast<uint8_t*>(base + address + lane * lane_bytes);
  }
};

Spread spread(Warp& w, const Pattern& p, Space space, uint32_t mask, uint32_t bytes);

// The bytes of one lane's access, nullptr after the grid has failed.
uint8_t* lane_memory(Warp& w, const Instr& in, unsigned lane, Space space, uint64_t address,
                     uint32_t bytes);
void lane_addresses(const Warp& w, const Instr& in, uint64_t* out);

}  // namespace sealane::ptx
