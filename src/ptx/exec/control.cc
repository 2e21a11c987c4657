// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Control flow, calls, special registers, moves between vectors and registers.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/exec/builtins.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"

namespace sealane::ptx {

Flow op_branch(Warp& w, const Instr& in, uint32_t mask) {
  return split_branch(w, mask, static_cast<uint32_t>(in.imm));
}

// Lanes that want the same target go together; the others come back here.
Flow op_branch_table(Warp& w, const Instr& in, uint32_t mask) {
  const uint32_t* index = w.from<uint32_t>(in.a);
  const uint32_t wanted = index[std::countr_zero(mask)];
  if (wanted >= in.count) {
    w.grid->fail(Fault::illegal_instruction, w, &in, mask, "brx.idx outside of its table");
    return Flow::fault;
  }
  uint32_t same = 0;
  for (unsigned i = 0; i < kLanes; ++i) same |= uint32_t{index[i] == wanted} << i;
  same &= mask;
  if (const uint32_t rest = mask & ~same; rest != 0) {
    w.groups.push_back({rest, w.pc, w.frame, -1, 0, w.turns, w.patience});
  }
  if (const uint32_t off = w.mask & ~mask; off != 0) {
    w.groups.push_back({off, w.pc + 1, w.frame, -1, 0, w.turns, w.patience});
  }
  w.mask = same;
  return split_branch(w, same, static_cast<uint32_t>(w.kernel->lists[in.list + wanted]));
}

Flow op_call(Warp& w, const Instr& in, uint32_t mask) {
  return call_function(w, in, mask, *w.kernel->functions[static_cast<size_t>(in.imm)]);
}

Flow op_call_address(Warp& w, const Instr& in, uint32_t mask) {
  const uint64_t* target = w.from<uint64_t>(in.b);
  const uint64_t wanted = target[std::countr_zero(mask)];
  const auto found = w.kernel->function_at.find(wanted);
  if (found == w.kernel->function_at.end()) {
    w.grid->fail(Fault::invalid_pc, w, &in, mask, "a call to what is no function", &wanted);
    return Flow::fault;
  }
  uint32_t same = 0;
  for (unsigned i = 0; i < kLanes; ++i) same |= uint32_t{target[i] == wanted} << i;
  same &= mask;
  if (const uint32_t rest = mask & ~same; rest != 0) {
    w.groups.push_back({rest, w.pc, w.frame, -1, 0, w.turns, w.patience});
    w.mask &= ~rest;
  }
  return call_function(w, in, same, *w.kernel->functions[found->second]);
}

Flow op_call_builtin(Warp& w, const Instr& in, uint32_t mask) {
  return call_builtin(w, in, mask, static_cast<Builtin>(in.mode));
}

Flow op_return(Warp& w, const Instr&, uint32_t mask) { return return_from(w, mask); }
Flow op_exit(Warp& w, const Instr&, uint32_t mask) { return end_lanes(w, mask); }

Flow op_trap(Warp& w, const Instr& in, uint32_t mask) {
  w.grid->fail(Fault::trap, w, &in, mask, "trap");
  return Flow::fault;
}

Flow op_nothing(Warp&, const Instr&, uint32_t) { return Flow::next; }

Flow op_sleep(Warp& w, const Instr&, uint32_t) {
  w.spun = true;
  w.patience = 0;  // others first
  ++w.pc;
  return Flow::moved;
}

namespace {

uint64_t uniform_value(const Warp& w, Special which) {
  const LaunchShape& shape = w.grid->shape;
  const auto n = static_cast<unsigned>(which);
  const auto of = [&](Special first, const uint32_t* values) {
    return values[n - static_cast<unsigned>(first)];
  };
  switch (which) {
    case Special::ntid_x:
    case Special::ntid_y:
    case Special::ntid_z:
      return of(Special::ntid_x, shape.block);
    case Special::ctaid_x:
    case Special::ctaid_y:
    case Special::ctaid_z:
      return of(Special::ctaid_x, w.block->index);
    case Special::nctaid_x:
    case Special::nctaid_y:
    case Special::nctaid_z:
      return of(Special::nctaid_x, shape.grid);
    case Special::warpid:
      return w.index;
    case Special::nwarpid:
      return 64;
    case Special::smid:
      return w.block->number % 132;
    case Special::nsmid:
      return 132;
    case Special::gridid:
      return w.grid->id;
    case Special::clock:
    case Special::clock64:
      return w.grid->device->clock();
    case Special::clock_hi:
      return w.grid->device->clock() >> 32;
    case Special::globaltimer:
    case Special::globaltimer_lo:
      return w.grid->device->now_ns();
    case Special::globaltimer_hi:
      return w.grid->device->now_ns() >> 32;
    case Special::dynamic_smem_size:
      return shape.dynamic_shared;
    case Special::total_smem_size:
      return w.block->shared.size();
    case Special::envreg1:
      return w.grid->workspace >> 32;
    case Special::envreg2:
      return w.grid->workspace;
    case Special::one:
      return 1;
    default:
      return 0;
  }
}

uint32_t lane_value(const Warp& w, Special which, unsigned lane) {
  switch (which) {
    case Special::tid_x:
      return w.thread_index[0][lane];
    case Special::tid_y:
      return w.thread_index[1][lane];
    case Special::tid_z:
      return w.thread_index[2][lane];
    case Special::laneid:
      return lane;
    case Special::lanemask_eq:
      return 1u << lane;
    case Special::lanemask_lt:
      return (1u << lane) - 1;
    case Special::lanemask_le:
      return (2u << lane) - 1;
    case Special::lanemask_gt:
      return ~((2u << lane) - 1);
    default:
      return ~((1u << lane) - 1);  // lanemask_ge
  }
}

bool differs_by_lane(Special which) {
  return which <= Special::tid_z || which == Special::laneid ||
         (which >= Special::lanemask_eq && which <= Special::lanemask_gt);
}

template <typename T>
void put_special(Warp& w, const Instr& in, uint32_t mask, Special which) {
  T* d = w.to<T>(in.d);
  if (!differs_by_lane(which)) return broadcast(d, uniform_value(w, which), mask);
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1) != 0) d[i] = static_cast<T>(lane_value(w, which, i));
  }
}

}  // namespace

Flow op_special(Warp& w, const Instr& in, uint32_t mask) {
  const auto which = static_cast<Special>(in.mode);
  if (which >= Special::clock && which <= Special::globaltimer_hi) note_spin(w);
  const bool row = which <= Special::tid_z && mask == kAllLanes && in.d_bytes == 4;
  if (row)
    std::memcpy(w.to<uint32_t>(in.d), w.thread_index[in.mode], sizeof w.thread_index[0]);
  else if (in.d_bytes == 8)
    put_special<uint64_t>(w, in, mask, which);
  else if (in.d_bytes == 4)
    put_special<uint32_t>(w, in, mask, which);
  else
    put_special<uint16_t>(w, in, mask, which);
  return Flow::next;
}

// Parts go one behind the other into d, from the lowest bits.
Flow op_pack(Warp& w, const Instr& in, uint32_t mask) {
  const int64_t* parts = w.kernel->lists.data() + in.list;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    uint8_t bytes[16] = {};
    for (unsigned k = 0; k < in.count; ++k) {
      const uint8_t* from = w.from<uint8_t>(static_cast<int32_t>(parts[k]));
      std::memcpy(bytes + k * in.a_bytes, from + size_t{i} * in.a_bytes, in.a_bytes);
    }
    std::memcpy(w.to<uint8_t>(in.d) + size_t{i} * in.d_bytes, bytes, in.d_bytes);
  }
  return Flow::next;
}

Flow op_unpack(Warp& w, const Instr& in, uint32_t mask) {
  const int64_t* parts = w.kernel->lists.data() + in.list;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    uint8_t bytes[16] = {};
    std::memcpy(bytes, w.from<uint8_t>(in.a) + size_t{i} * in.d_bytes, in.d_bytes);
    for (unsigned k = 0; k < in.count; ++k) {
      if (parts[k] < 0) continue;  // _
      std::memcpy(w.to<uint8_t>(static_cast<int32_t>(parts[k])) + size_t{i} * in.a_bytes,
                  bytes + k * in.a_bytes, in.a_bytes);
    }
  }
  return Flow::next;
}

Flow op_predicate(Warp& w, const Instr& in, uint32_t mask) {
  const uint32_t a = w.predicate(in.a);
  const uint32_t b = w.predicate(in.b);
  switch (static_cast<PredicateOp>(in.mode)) {
    case PredicateOp::move:
      w.set_predicate(in.d, a, mask);
      break;
    case PredicateOp::not_:
      w.set_predicate(in.d, ~a, mask);
      break;
    case PredicateOp::and_:
      w.set_predicate(in.d, a & b, mask);
      break;
    case PredicateOp::or_:
      w.set_predicate(in.d, a | b, mask);
      break;
    case PredicateOp::xor_:
      w.set_predicate(in.d, a ^ b, mask);
      break;
  }
  return Flow::next;
}

}  // namespace sealane::ptx
