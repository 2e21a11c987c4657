// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Watches a block's shared memory, if asked to: reads of bytes nobody wrote, and accesses of two
// warps, one of them a write, that nothing orders. What orders warps: barriers of the block,
// barrier objects, atomics on the same word. Each warp has a clock for every warp (what it knows of
// it); each byte remembers who wrote it last and who has read it since. Lanes of one warp are not
// compared with each other.
//
// One thread at a time: the worker that runs the block.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ptx/kernel.h"

namespace sealane::ptx {

struct Checks {
  bool memory = false;  // reads before writes
  bool races = false;

  bool any() const { return memory || races; }
};

class Checker {
 public:
  Checker(Checks checks, uint32_t warps, uint64_t shared_bytes);

  // An access of one lane to shared memory.
  void access(Warp& warp, const Instr& in, unsigned lane, uint64_t address, uint32_t bytes,
              bool writes);
  // The same for each lane of a mask, addresses of the space or generic ones.
  void accesses(Warp& warp, const Instr& in, Space space, const uint64_t* addresses, uint32_t mask,
                uint32_t bytes, bool writes);

  // These warps met; an atomic or a barrier object at an address was used.
  void meet(const std::vector<uint32_t>& warps);
  void release(uint32_t warp, uint64_t address);
  void acquire(uint32_t warp, uint64_t address);

 private:
  using Clocks = std::vector<uint32_t>;  // by warp
  struct Access {
    uint16_t warp = 0;
    uint8_t lane = 0;
    uint32_t clock = 0;  // 0: there was none
    uint32_t line = 0;
  };
  struct Byte {
    Access write;
    Access read;  // the last of another warp than the one before, if several read
    Access other_read;
  };

  bool ordered(const Access& before, uint32_t warp) const {
    return before.clock == 0 || before.warp == warp || before.clock <= clocks_[warp][before.warp];
  }
  void report_race(Warp& warp, const Instr& in, unsigned lane, uint64_t address, bool writes,
                   const Access& other, bool other_writes);

  const Checks checks_;
  std::vector<Clocks> clocks_;
  std::map<uint64_t, Clocks> released_;  // by address
  std::vector<Byte> bytes_;
};

}  // namespace sealane::ptx
