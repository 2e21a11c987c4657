// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp as its handlers see it: registers, lanes, who it belongs to. How groups of lanes go apart
// and meet is in warp.cc.
//
// One thread at a time: the worker that runs its block.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptx/kernel.h"

namespace sealane::ptx {

struct Block;
struct Grid;

// A function that runs, for the lanes that called it together.
struct Frame {
  const Function* function = nullptr;
  Frame* parent = nullptr;
  uint32_t return_pc = 0;
  uint32_t depth = 0;
  uint32_t live = 0;        // lanes inside
  uint32_t stack_base = 0;  // of its part of each lane's stack
  uint32_t call_list = 0;   // where the caller's places for returns are
  uint16_t call_returns = 0;
  std::vector<uint64_t> registers;  // aligned by allocation
  uint8_t* file = nullptr;
};

// Registers and stacks, which a warp has from its first turn to its end.
struct WarpMemory {
  std::vector<std::unique_ptr<Frame>> frames;
  std::unique_ptr<uint8_t[]> stack;
};

struct Group {
  uint32_t mask = 0;
  uint32_t pc = 0;
  Frame* frame = nullptr;
  int16_t barrier = -1;   // waits for this barrier of the block
  uint32_t needs = 0;     // lanes the instruction it is at waits for; 0: none
  uint64_t ran_at = 0;    // its last turn
  uint32_t patience = 0;  // what is left of it
};

struct Warp {
  // What handlers of arithmetic use.
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  uint32_t carry = 0;

  uint32_t mask = 0;  // of the group that runs
  uint32_t pc = 0;
  Frame* frame = nullptr;
  uint32_t alive = 0;
  const Kernel* kernel = nullptr;
  Block* block = nullptr;
  Grid* grid = nullptr;
  uint32_t index = 0;        // in its block
  uint32_t patience = 0;     // how much longer the group may keep its turn
  uint32_t limit = 0;        // another group of the frame is at this pc: meet there
  uint32_t wanted = 0;       // lanes the group that just said Flow::wait needs
  int16_t barrier = -1;      // or the barrier it waits for
  bool favoured = false;     // the group has its turn because the others had theirs
  bool spun = false;         // gave its turn up because it waits for somebody's write
  uint8_t* stack = nullptr;  // lanes' local memory, one behind the other
  uint32_t stack_bytes = 0;  // of a lane
  uint32_t thread_index[3][kLanes] = {};

  std::vector<Group> groups;  // those that do not run now
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<Frame*> free_frames;
  std::unique_ptr<uint8_t[]> stack_memory;
  uint64_t turns = 0;

  // Counted for pacing, bench and reports.
  uint64_t lane_instructions = 0;
  uint64_t operations = 0;
  uint64_t global_bytes = 0;

  template <typename T>
  T* to(int32_t offset) {
    return reinterpret_cast<T*>(registers + offset);
  }
  template <typename T>
  const T* from(int32_t offset) const {
    return reinterpret_cast<const T*>(offset >= 0 ? registers + offset : constants + ~offset);
  }
  uint32_t predicate(int32_t offset) const { return *from<uint32_t>(offset); }
  void set_predicate(int32_t offset, uint32_t value, uint32_t lanes_set) {
    uint32_t& p = *to<uint32_t>(offset);
    p = (p & ~lanes_set) | (value & lanes_set);
  }
};

// One value for the lanes of a mask.
template <typename T>
void broadcast(T* d, uint64_t bits, uint32_t mask) {
  const T value = static_cast<T>(bits);
  if (mask == kAllLanes) {
    for (unsigned i = 0; i < kLanes; ++i) d[i] = value;
  } else {
    for (unsigned i = 0; i < kLanes; ++i) d[i] = (mask >> i & 1) != 0 ? value : d[i];
  }
}

}  // namespace sealane::ptx
