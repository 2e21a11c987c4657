// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of lanes. A warp begins as one group. Lanes that go different ways become two; groups of
// one frame that stand at the same instruction become one again. Whose turn it is:
//   1. the deepest call, then the lowest pc: what lies behind waits there to be met;
//   2. but a group that used up its patience (backward jumps, and reads of memory others write,
//      which count more) goes behind all others: lanes may wait for each other in any way. Calls,
//      going apart and meeting do not give patience back, or a loop with one of these inside would
//      never lose it.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/exec/grid.h"

namespace sealane::ptx {
namespace {

constexpr uint32_t kPatience = 4096;
constexpr uint32_t kSpinCost = 64;
constexpr uint32_t kDepthMax = 8192;
constexpr uint64_t kFrameBytesMax = uint64_t{1} << 30;  // of a warp, over all calls

uint64_t count_lanes(uint32_t mask) {
  return mask == kAllLanes ? kLanes : static_cast<uint64_t>(std::popcount(mask));
}

Frame* new_frame(Warp& w, const Function& function) {
  for (size_t i = 0; i < w.free_frames.size(); ++i) {
    Frame* frame = w.free_frames[i];
    if (frame->function != &function) continue;
    w.free_frames[i] = w.free_frames.back();
    w.free_frames.pop_back();
    return frame;
  }
  auto frame = std::make_unique<Frame>();
  frame->function = &function;
  frame->registers.resize(function.register_bytes / 8 + 8);
  const auto at = reinterpret_cast<uintptr_t>(frame->registers.data());
  frame->file = reinterpret_cast<uint8_t*>((at + 63) & ~uintptr_t{63});
  w.frames.push_back(std::move(frame));
  return w.frames.back().get();
}

void merge_groups(Warp& w) {
  for (size_t i = 0; i < w.groups.size(); ++i) {
    Group& one = w.groups[i];
    if (one.barrier >= 0) continue;
    for (size_t j = i + 1; j < w.groups.size();) {
      Group& other = w.groups[j];
      if (other.barrier < 0 && other.pc == one.pc && other.frame == one.frame) {
        one.mask |= other.mask;
        one.needs = 0;  // tries again
        one.ran_at = std::min(one.ran_at, other.ran_at);
        one.patience = std::min(one.patience, other.patience);
        w.groups[j] = w.groups.back();
        w.groups.pop_back();
      } else {
        ++j;
      }
    }
  }
}

bool ready(const Warp& w, const Group& g) {
  return g.barrier < 0 && (g.needs & w.alive & ~g.mask) == 0;
}

// Lanes of one bar.warp.sync may stand at different ones.
bool release_scattered(Warp& w) {
  for (const Group& one : w.groups) {
    if (one.needs == 0) continue;
    uint32_t all = 0;
    for (const Group& other : w.groups) {
      if (other.needs == one.needs && other.frame->function->code[other.pc].flag) all |= other.mask;
    }
    if ((one.needs & w.alive & ~all) != 0) continue;
    const uint32_t needs = one.needs;
    for (Group& other : w.groups) {
      const Instr& at = other.frame->function->code[other.pc];
      if (other.needs != needs || !at.flag) continue;
      ++other.pc;
      other.needs = 0;
    }
    return true;
  }
  return false;
}

size_t choose(const Warp& w, bool oldest) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < w.groups.size(); ++i) {
    const Group& g = w.groups[i];
    if (!ready(w, g)) continue;
    if (best == SIZE_MAX) {
      best = i;
      continue;
    }
    const Group& b = w.groups[best];
    const bool better = oldest && g.ran_at != b.ran_at     ? g.ran_at < b.ran_at
                        : g.frame->depth != b.frame->depth ? g.frame->depth > b.frame->depth
                                                           : g.pc < b.pc;
    if (better) best = i;
  }
  return best;
}

void load_group(Warp& w, size_t index) {
  const Group g = w.groups[index];
  w.groups[index] = w.groups.back();
  w.groups.pop_back();
  w.mask = g.mask;
  w.pc = g.pc;
  w.frame = g.frame;
  w.registers = g.frame->file;
  w.patience = g.patience;
}

void set_limit(Warp& w) {
  w.limit = UINT32_MAX;
  for (const Group& g : w.groups) {
    if (g.frame == w.frame && g.barrier < 0 && g.pc > w.pc) w.limit = std::min(w.limit, g.pc);
  }
}

void park(Warp& w, bool tired) {
  if (w.mask == 0) return;
  Group g;
  g.mask = w.mask;
  g.pc = w.pc;
  g.frame = w.frame;
  g.barrier = w.barrier;
  g.needs = w.wanted;
  g.ran_at = tired || w.favoured ? ++w.turns : w.turns;
  g.patience = w.patience > 0 ? w.patience : kPatience;
  w.barrier = -1;
  w.wanted = 0;
  w.mask = 0;
  w.groups.push_back(g);
}

// A group to run, or why there is none.
WarpState next_group(Warp& w, bool tired) {
  const bool waits = w.barrier >= 0 || w.wanted != 0;
  if (w.groups.empty() && w.mask != 0 && !waits && !tired && !w.favoured) {  // all lanes, as before
    if (w.patience == 0) w.patience = kPatience;
    w.limit = UINT32_MAX;
    return WarpState::turn_over;
  }
  park(w, tired);
  merge_groups(w);
  if (w.groups.empty()) return WarpState::ended;
  size_t index = choose(w, tired);
  if (index == SIZE_MAX && release_scattered(w)) {
    merge_groups(w);
    index = choose(w, false);
  }
  if (index == SIZE_MAX) {
    for (const Group& g : w.groups) {
      if (g.barrier >= 0) return WarpState::blocked;
    }
    const Group& g = w.groups[0];
    w.grid->fail(Fault::hang, w, &g.frame->function->code[g.pc], g.mask,
                 "lanes of a warp wait for each other at different instructions");
    return WarpState::failed;
  }
  load_group(w, index);
  w.favoured = tired && !w.groups.empty();
  set_limit(w);
  return WarpState::turn_over;
}

void release_frame(Warp& w, Frame* frame, uint32_t lanes_gone) {
  frame->live &= ~lanes_gone;
  if (frame->live == 0) w.free_frames.push_back(frame);
}

void number_threads(Warp& w) {
  const uint32_t* size = w.grid->shape.block;
  const uint32_t first = w.index * kLanes;
  uint32_t x = first % size[0];
  uint32_t y = first / size[0] % size[1];
  uint32_t z = first / (size[0] * size[1]);
  if (size[0] - x >= kLanes) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      w.thread_index[0][i] = x + i;
      w.thread_index[1][i] = y;
      w.thread_index[2][i] = z;
    }
    return;
  }
  for (uint32_t i = 0; i < kLanes; ++i) {
    w.thread_index[0][i] = x;
    w.thread_index[1][i] = y;
    w.thread_index[2][i] = z;
    if (++x < size[0]) continue;
    x = 0;
    if (++y < size[1]) continue;
    y = 0;
    ++z;
  }
}

// What a warp needs to run is taken when its first turn comes: most warps end within it, and the
// next one finds registers that are still in the cache.
void start_warp(Warp& w) {
  const Kernel& kernel = *w.kernel;
  std::vector<WarpMemory>& spare = w.block->spare;
  if (w.frames.empty() && !spare.empty()) {
    w.frames = std::move(spare.back().frames);
    w.stack_memory = std::move(spare.back().stack);
    spare.pop_back();
  }
  number_threads(w);
  w.stack_bytes = kernel.recursive
                      ? std::max(kernel.functions[0]->stack_bytes + w.grid->stack_limit, 1024u)
                      : kernel.stack_bytes;
  w.stack_bytes = (w.stack_bytes + 15) & ~15u;
  if (!w.stack_memory && w.stack_bytes > 0) {
    w.stack_memory.reset(new uint8_t[size_t{w.stack_bytes} * kLanes + 16]());
  }
  const auto at = reinterpret_cast<uintptr_t>(w.stack_memory.get());
  w.stack = reinterpret_cast<uint8_t*>((at + 15) & ~uintptr_t{15});
  if (w.frames.empty()) new_frame(w, *kernel.functions[0]);
  w.free_frames.clear();
  for (size_t i = 1; i < w.frames.size(); ++i) w.free_frames.push_back(w.frames[i].get());
  w.frame = w.frames[0].get();
  std::memset(w.frame->file, 0, w.frame->function->register_bytes);
  w.frame->live = w.alive;
  w.registers = w.frame->file;
  w.mask = w.alive;
  w.pc = 0;
}

}  // namespace

void note_spin(Warp& w) {
  w.spun = true;
  w.patience = w.patience > kSpinCost ? w.patience - kSpinCost : 1;
}

Flow split_branch(Warp& w, uint32_t taken, uint32_t target) {
  const uint32_t rest = w.mask & ~taken;
  if (rest != 0) {
    Group other;
    other.mask = rest;
    other.pc = w.pc + 1;
    other.frame = w.frame;
    other.ran_at = w.turns;
    other.patience = w.patience;
    w.groups.push_back(other);
    w.mask = taken;
    w.pc = target;
    return Flow::moved;
  }
  if (target <= w.pc && w.patience > 0) --w.patience;
  w.pc = target;
  return Flow::moved;
}

Flow call_function(Warp& w, const Instr& in, uint32_t mask, const Function& function) {
  if (!function.error.empty()) {
    w.grid->fail(Fault::unsupported, w, &in, mask, function.error);
    return Flow::fault;
  }
  Frame* caller = w.frame;
  const uint32_t base = caller->stack_base + caller->function->stack_bytes;
  const bool deep = caller->depth >= kDepthMax ||
                    w.frames.size() * uint64_t{function.register_bytes} > kFrameBytesMax;
  if (deep || uint64_t{base} + function.stack_bytes > w.stack_bytes) {
    w.grid->fail(Fault::stack, w, &in, mask, "the stack is full: see cudaLimitStackSize");
    return Flow::fault;
  }
  Frame* frame = new_frame(w, function);
  frame->parent = caller;
  frame->return_pc = w.pc + 1;
  frame->depth = caller->depth + 1;
  frame->live = mask;
  frame->stack_base = base;
  frame->call_list = in.list;
  frame->call_returns = static_cast<uint16_t>(in.d);
  // lists: places of the returns, then of the arguments, in the caller's stack.
  const int64_t* places = w.kernel->lists.data() + in.list + in.d;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    uint8_t* lane = w.stack + static_cast<size_t>(std::countr_zero(left)) * w.stack_bytes;
    for (size_t i = 0; i < function.parameters.size() && i < static_cast<size_t>(in.a); ++i) {
      std::memcpy(lane + base + function.parameters[i].offset,
                  lane + caller->stack_base + places[i], function.parameters[i].bytes);
    }
  }
  if (const uint32_t rest = w.mask & ~mask; rest != 0) {
    w.groups.push_back({rest, w.pc + 1, caller, -1, 0, w.turns, w.patience});
  }
  w.mask = mask;
  w.frame = frame;
  w.registers = frame->file;
  w.pc = 0;
  return Flow::moved;
}

Flow return_from(Warp& w, uint32_t mask) {
  Frame* frame = w.frame;
  if (frame->parent == nullptr) return end_lanes(w, mask);
  const Function& function = *frame->function;
  const int64_t* places = w.kernel->lists.data() + frame->call_list;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    uint8_t* lane = w.stack + static_cast<size_t>(std::countr_zero(left)) * w.stack_bytes;
    for (size_t i = 0; i < function.returns.size() && i < frame->call_returns; ++i) {
      std::memcpy(lane + frame->parent->stack_base + places[i],
                  lane + frame->stack_base + function.returns[i].offset, function.returns[i].bytes);
    }
  }
  if (const uint32_t rest = w.mask & ~mask; rest != 0) {
    w.groups.push_back({rest, w.pc + 1, frame, -1, 0, w.turns, w.patience});
  }
  w.mask = mask;
  w.pc = frame->return_pc;
  w.frame = frame->parent;
  w.registers = frame->parent->file;
  release_frame(w, frame, mask);
  return Flow::moved;
}

Flow end_lanes(Warp& w, uint32_t mask) {
  for (Frame* frame = w.frame; frame->parent != nullptr;) {
    Frame* parent = frame->parent;
    release_frame(w, frame, mask);
    frame = parent;
  }
  w.alive &= ~mask;
  w.mask &= ~mask;
  ++w.pc;
  return Flow::moved;
}

bool lanes_together(Warp& w, uint32_t mask, uint32_t needs) {
  if ((needs & w.alive & ~mask) == 0) return true;
  w.wanted = needs;
  return false;
}

void begin_warp(Warp& w, Block& block, uint32_t index) {
  w.kernel = block.grid->kernel.get();
  w.grid = block.grid;
  w.block = &block;
  w.index = index;
  w.constants = w.kernel->constants.data();
  w.carry = 0;
  w.groups.clear();
  w.barrier = -1;
  w.wanted = 0;
  w.turns = 0;
  w.patience = kPatience;
  w.favoured = false;
  w.lane_instructions = w.operations = w.global_bytes = 0;
  const uint32_t* size = block.grid->shape.block;
  const uint32_t count = std::min(kLanes, size[0] * size[1] * size[2] - index * kLanes);
  w.alive = count == kLanes ? kAllLanes : (1u << count) - 1;
  w.mask = 0;
  w.frame = nullptr;
}

void end_warp(Warp& w) {
  w.block->spare.push_back({std::move(w.frames), std::move(w.stack_memory)});
  w.frames.clear();
}

// One turn: ends when all groups wait or have ended, or when one that runs has lost patience and
// no other group wants to run.
WarpState run_warp(Warp& w) {
  if (w.frame == nullptr) start_warp(w);
  // A group that was given its turn and has not had it yet keeps it.
  const bool keeps = w.favoured && w.mask != 0;
  WarpState state = keeps ? WarpState::turn_over : next_group(w, false);
  if (keeps) set_limit(w);
  while (state == WarpState::turn_over) {
    const Instr* code = w.frame->function->code.data();
    uint64_t lanes = count_lanes(w.mask);
    uint32_t pc = w.pc;
    for (;;) {
      const Instr& in = code[pc];
      uint32_t mask = w.mask;
      w.lane_instructions += lanes;
      w.operations += lanes * in.cost;
      if (in.guard >= 0) {
        const uint32_t guard = w.predicate(in.guard);
        mask &= in.guard_not ? ~guard : guard;
        if (mask == 0) {
          if (++pc >= w.limit) break;
          continue;
        }
      }
      w.pc = pc;
      const Flow flow = in.run(w, in, mask);
      if (flow == Flow::next) {
        if (++pc >= w.limit) break;
        continue;
      }
      if (flow == Flow::fault) return WarpState::failed;
      if (flow == Flow::wait) {
        pc = w.pc;
        break;
      }
      // Moved: the same group unless lanes went apart, ended, called or returned.
      if (w.mask == 0) break;
      pc = w.pc;
      if (w.frame->function->code.data() != code || w.patience == 0 || pc >= w.limit) break;
      if (!w.groups.empty()) {
        if (count_lanes(w.mask) != lanes) break;
        set_limit(w);
      } else {
        lanes = count_lanes(w.mask);
      }
    }
    w.pc = pc;
    const bool tired = w.mask != 0 && w.patience == 0;
    if (tired && w.groups.empty()) return WarpState::turn_over;
    if (tired && w.grid->failed()) return WarpState::failed;
    if (w.favoured && !tired && w.mask != 0 && w.barrier < 0 && w.wanted == 0) {
      // Keeps its turn; those who stand where it stands join.
      w.groups.push_back({w.mask, w.pc, w.frame, -1, 0, w.turns, w.patience});
      const Frame* frame = w.frame;
      w.mask = 0;
      merge_groups(w);
      for (size_t i = 0; i < w.groups.size(); ++i) {
        if (w.groups[i].frame == frame && w.groups[i].pc == pc && w.groups[i].barrier < 0) {
          load_group(w, i);
          break;
        }
      }
      set_limit(w);
      continue;
    }
    const size_t others = w.groups.size();
    state = next_group(w, tired);
    // All groups had a turn and none got anywhere but round in circles: let others of the block.
    if (tired && state == WarpState::turn_over && w.turns % (others + 2) == 0) {
      return WarpState::turn_over;
    }
  }
  return state;
}

}  // namespace sealane::ptx
