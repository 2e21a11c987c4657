// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "ptx/exec/grid.h"

namespace sealane::ptx {
namespace {

constexpr int kTurnsOfWarps = 64;  // of each warp before others than its block have theirs

std::string hex(uint64_t value) {
  char digits[20] = "0x";
  const auto end = std::to_chars(digits + 2, digits + sizeof digits, value, 16).ptr;
  return {digits, end};
}

// Which thread of which kernel, and where it is.
std::string place_of(const Warp& w, const Instr* in, unsigned lane) {
  const uint32_t* b = w.block->index;
  const Kernel& kernel = *w.kernel;
  std::string out = concat("kernel ", printable(kernel.name, 200), ", block (", b[0], ",", b[1],
                           ",", b[2], "), thread (", w.thread_index[0][lane], ",",
                           w.thread_index[1][lane], ",", w.thread_index[2][lane], ")");
  if (in != nullptr) out += concat(", PTX line ", in->line, " (", kernel.names[in->name], ")");
  return out;
}

}  // namespace

void Grid::fail(Fault kind, const Warp& w, const Instr* in, uint32_t lane_mask,
                std::string_view what, const uint64_t* address) {
  const std::lock_guard lock(mutex);
  if (failed()) return;
  const auto lane = static_cast<uint32_t>(lane_mask != 0 ? std::countr_zero(lane_mask) : 0);
  message = concat(place_of(w, in, lane), ": ", what);
  if (address != nullptr) message += concat(" at ", hex(*address));
  fault.store(static_cast<uint8_t>(kind));
}

void Grid::report(const Warp& w, const Instr& in, unsigned lane, std::string_view what) {
  const std::lock_guard lock(mutex);
  if (!reported.insert(in.line).second) return;
  reports.push_back(concat(place_of(w, &in, lane), ": ", what));
}

void Block::begin(Grid& of, uint64_t block_number) {
  grid = &of;
  number = block_number;
  const uint32_t* size = of.shape.grid;
  index[0] = static_cast<uint32_t>(block_number % size[0]);
  index[1] = static_cast<uint32_t>(block_number / size[0] % size[1]);
  index[2] = static_cast<uint32_t>(block_number / size[0] / size[1]);
  const Kernel& kernel = *of.kernel;
  const uint32_t bytes = kernel.dynamic_shared_offset + of.shape.dynamic_shared;
  shared.assign(bytes, 0);
  const uint32_t threads = of.shape.block[0] * of.shape.block[1] * of.shape.block[2];
  const uint32_t count = (threads + kLanes - 1) / kLanes;
  while (warps.size() < count) warps.push_back(std::make_unique<Warp>());
  for (uint32_t i = 0; i < count; ++i) begin_warp(*warps[i], *this, i);
  for (Barrier& barrier : barriers) {
    barrier.arrived.assign(count, 0);
    barrier.used = false;
    barrier.expected = barrier.count_true = barrier.voted = 0;
  }
  waiting.clear();
  printed.clear();
  checker = of.checks.any() ? std::make_unique<Checker>(of.checks, count, bytes) : nullptr;
  next_warp = 0;
  live_warps = count;
}

uint8_t* Block::find_global(uint64_t address, uint64_t bytes) {
  const Window found = grid->device->find(address);
  const uint64_t at = address - found.start;
  if (at >= found.bytes || bytes > found.bytes - at) return nullptr;
  recent[recent_next++ % std::size(recent)] = found;
  return found.memory + at;
}

void Block::arrive(Warp& w, const Instr& in, uint32_t mask, unsigned id, uint32_t expected) {
  Barrier& barrier = barriers[id];
  barrier.used = true;
  barrier.expected = expected;
  barrier.arrived[w.index] |= mask;
  (void)in;
}

bool Block::complete(unsigned id) {
  Barrier& barrier = barriers[id];
  if (!barrier.used) return false;
  // A warp that is all here counts whole, as hardware counts warps.
  uint32_t come = 0;
  uint32_t live = 0;
  for (size_t i = 0; i < barrier.arrived.size(); ++i) {
    const uint32_t alive = warps[i]->alive;
    const uint32_t here = barrier.arrived[i];
    if (alive != 0 || here != 0) live += kLanes;
    if (here != 0) {
      come += (alive & ~here) == 0 ? kLanes : static_cast<uint32_t>(std::popcount(here));
    }
  }
  const uint32_t expected = barrier.expected == 0 ? live : (barrier.expected + 31) / 32 * 32;
  if (come < expected) return false;
  // Results of bar.red: everybody's votes are in.
  for (size_t i = 0; i < waiting.size();) {
    const Waiting& wants = waiting[i];
    if ((wants.mode >> 4) != id) {
      ++i;
      continue;
    }
    const unsigned how = wants.mode & 3;
    if (how == 1) {
      auto* d = reinterpret_cast<uint32_t*>(wants.registers + wants.d);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if ((wants.mask >> lane & 1) != 0) d[lane] = barrier.count_true;
      }
    } else {
      const bool value = how == 2 ? barrier.count_true == barrier.voted : barrier.count_true > 0;
      auto& p = *reinterpret_cast<uint32_t*>(wants.registers + wants.d);
      p = value ? p | wants.mask : p & ~wants.mask;
    }
    waiting[i] = waiting.back();
    waiting.pop_back();
  }
  if (checker) {
    std::vector<uint32_t> met;
    for (uint32_t i = 0; i < barrier.arrived.size(); ++i) {
      if (barrier.arrived[i] != 0) met.push_back(i);
    }
    checker->meet(met);
  }
  barrier.arrived.assign(barrier.arrived.size(), 0);
  barrier.used = false;
  barrier.count_true = barrier.voted = 0;
  for (const auto& warp : warps) {
    for (Group& group : warp->groups) {
      if (group.barrier == static_cast<int16_t>(id)) group.barrier = -1;
    }
  }
  return true;
}

void Block::collect_counts() {
  Counts sum;
  for (uint32_t i = 0; i < barriers[0].arrived.size(); ++i) {
    sum.lane_instructions += warps[i]->lane_instructions;
    sum.operations += warps[i]->operations;
    sum.global_bytes += warps[i]->global_bytes;
  }
  const std::lock_guard lock(grid->mutex);
  grid->counts.lane_instructions += sum.lane_instructions;
  grid->counts.operations += sum.operations;
  grid->counts.global_bytes += sum.global_bytes;
  grid->printed += printed;
  printed.clear();
}

// From here on what was freed before is not found.
void Block::drop_windows() {
  lookups->seen.store(lookups->forgotten->load());
  for (Window& window : recent) window = {};
}

Block::Outcome Block::run() {
  drop_windows();
  const auto count = static_cast<uint32_t>(barriers[0].arrived.size());
  for (int round = 0; round < kTurnsOfWarps; ++round) {
    bool ran = false;
    bool all_spun = true;
    for (uint32_t i = 0; i < count; ++i) {
      Warp& w = *warps[i];
      if (w.alive == 0) continue;
      if (lookups->seen != *lookups->forgotten) drop_windows();
      w.spun = false;
      const uint64_t before = w.lane_instructions;
      const WarpState state = run_warp(w);
      if (state == WarpState::failed || grid->failed()) return Outcome::ended;
      const bool moved = w.lane_instructions != before;
      ran = ran || moved;
      if (state == WarpState::turn_over)
        all_spun = all_spun && w.spun;
      else if (moved)  // as far as a barrier: it waits for this block, not for others
        all_spun = false;
      if (state != WarpState::ended) continue;
      all_spun = false;
      --live_warps;
      end_warp(w);
      for (unsigned id = 0; id < std::size(barriers); ++id) {
        if (barriers[id].used) complete(id);
      }
    }
    if (live_warps == 0) return Outcome::ended;
    if (!ran) {
      bool released = false;
      for (unsigned id = 0; id < std::size(barriers); ++id) released = complete(id) || released;
      if (released) continue;
      const auto stuck = std::find_if(warps.begin(), warps.end(),
                                      [](const auto& w) { return !w->groups.empty(); });
      const Group& g = (*stuck)->groups[0];
      const Instr* at = g.pc > 0 ? &g.frame->function->code[g.pc - 1] : nullptr;
      grid->fail(Fault::hang, **stuck, at, g.mask, "a barrier that the other threads never reach");
      return Outcome::ended;
    }
    if (all_spun) return Outcome::spun;
  }
  return Outcome::quantum;
}

}  // namespace sealane::ptx
