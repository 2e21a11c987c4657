// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Grids and blocks: what a launch is made of while it runs. How workers share them is in
// executor.cc.
//
// A block belongs to one worker at a time. A grid's atomics and its mutex are for all.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ptx/exec/checker.h"
#include "ptx/exec/device.h"
#include "ptx/exec/warp.h"

namespace sealane::ptx {

enum class Fault : uint8_t {
  none,
  illegal_address,
  misaligned_address,
  illegal_instruction,
  invalid_pc,  // a call through an address that is no function
  trap,
  assertion,
  stack,  // a lane's local memory is full
  hang,   // lanes or warps wait for each other for ever
  unsupported,
};

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;
};

struct Counts {
  uint64_t lane_instructions = 0;
  uint64_t operations = 0;
  uint64_t global_bytes = 0;
};

struct Grid {
  std::shared_ptr<const Kernel> kernel;
  LaunchShape shape;
  std::vector<uint8_t> parameters;
  Device* device = nullptr;
  uint64_t id = 0;
  uint64_t workspace = 0;       // %envreg1 and 2: of grid barriers
  uint32_t stack_limit = 1024;  // of a lane, where the kernel does not say
  uint32_t resident_max = 1;    // blocks that make progress together
  uint64_t blocks = 0;
  Checks checks;

  std::atomic<uint8_t> fault{0};
  std::mutex mutex;  // what follows
  std::string message;
  std::string printed;
  std::vector<std::string> reports;  // of checks, one of each instruction
  std::set<uint32_t> reported;       // lines
  Counts counts;
  std::vector<std::unique_ptr<Block>> idle;  // to be used again
  uint64_t next_block = 0;                   // guarded by the executor
  uint64_t ended_blocks = 0;
  uint32_t resident = 0;
  bool listed = false;

  void fail(Fault kind, const Warp& warp, const Instr* in, uint32_t lane_mask,
            std::string_view what, const uint64_t* address = nullptr);
  // What a check found: the grid goes on.
  void report(const Warp& warp, const Instr& in, unsigned lane, std::string_view what);
  bool failed() const { return fault.load(std::memory_order_relaxed) != 0; }
};

struct Barrier {
  std::vector<uint32_t> arrived;  // lanes, by warp
  uint32_t expected = 0;          // threads; 0: the block's
  uint32_t count_true = 0;        // of bar.red's predicate
  uint32_t voted = 0;
  bool used = false;
};

struct Waiting {  // a group at a barrier that wants a result
  uint32_t warp;
  uint32_t mask;
  uint8_t* registers;
  int32_t d;
  uint8_t mode;
};

// A worker's: which addresses that blocks found may still be in use (Executor::forget_windows).
struct Lookups {
  const std::atomic<uint64_t>* forgotten = nullptr;
  std::atomic<uint64_t> seen{0};  // of `forgotten` when windows were last dropped; 0: none are held
};

struct Block {
  Grid* grid = nullptr;
  Lookups* lookups = nullptr;
  uint32_t index[3] = {0, 0, 0};
  uint64_t number = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<WarpMemory> spare;  // of warps that ended
  std::vector<uint8_t> shared;
  std::unique_ptr<Checker> checker;  // nullptr: nothing is checked
  Barrier barriers[16];
  std::vector<Waiting> waiting;
  Window recent[4];
  uint32_t recent_next = 0;
  uint32_t next_warp = 0;
  uint32_t live_warps = 0;
  std::string printed;

  enum class Outcome : uint8_t { ended, spun, quantum };
  void begin(Grid& of, uint64_t block_number);
  Outcome run();  // until it ends, waits for others' writes, or has had its share
  void arrive(Warp& warp, const Instr& in, uint32_t mask, unsigned id, uint32_t expected);
  bool complete(unsigned id);  // releases a barrier if all have come
  void collect_counts();
  void drop_windows();

  // The bytes behind a range of global addresses, nullptr: not inside one allocation.
  uint8_t* global(uint64_t address, uint64_t bytes) {
    for (const Window& window : recent) {
      const uint64_t at = address - window.start;
      if (at < window.bytes && bytes <= window.bytes - at) return window.memory + at;
    }
    return find_global(address, bytes);
  }
  uint8_t* find_global(uint64_t address, uint64_t bytes);
};

// Runs a warp until it ends, every group waits, or its turn is over.
enum class WarpState : uint8_t { ended, blocked, turn_over, failed };
WarpState run_warp(Warp& warp);
void begin_warp(Warp& warp, Block& block, uint32_t index);
void end_warp(Warp& warp);  // its memory is another's

// For handlers: where groups go.
Flow split_branch(Warp& warp, uint32_t taken, uint32_t target);
Flow call_function(Warp& warp, const Instr& in, uint32_t mask, const Function& function);
Flow return_from(Warp& warp, uint32_t mask);
Flow end_lanes(Warp& warp, uint32_t mask);
// A group at an instruction that needs all lanes of `needs`. True: they are here.
bool lanes_together(Warp& warp, uint32_t mask, uint32_t needs);
void note_spin(Warp& warp);

}  // namespace sealane::ptx
