// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Instructions that lanes of a warp, or threads of a block, do together. One that names lanes
// (`.sync`) waits until all of them that still live are in its group.

#include <algorithm>
#include <bit>

#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"

namespace sealane::ptx {
namespace {

// Lanes that do a .sync instruction together: those that name the same lanes. One instruction of a
// group may be several such parties, each of which waits for its own members only.
class Party {
 public:
  Party(Warp& w, int32_t operand, uint32_t mask)
      : w_(w), names_(w.from<uint32_t>(operand)), mask_(mask) {
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(left));
      const bool here = (names_[i] & w.alive & ~mask) == 0;
      ready_ |= uint32_t{here} << i;
      if (!here) missed_ |= names_[i];
    }
  }

  // Lanes whose party is complete. None: wait().
  uint32_t ready() const { return ready_; }
  Flow wait() const {
    w_.wanted = missed_;
    return Flow::wait;
  }

  // visit(lanes) for every complete party.
  template <typename Visit>
  void each(Visit visit) const {
    for (uint32_t left = ready_; left != 0;) {
      const uint32_t named = names_[std::countr_zero(left)];
      uint32_t lanes = 0;
      for (unsigned i = 0; i < kLanes; ++i) lanes |= uint32_t{names_[i] == named} << i;
      lanes &= left;
      visit(lanes);
      left &= ~lanes;
    }
  }

  // Those that are done go on, the others stay and wait.
  Flow go_on() const {
    const uint32_t stay = mask_ & ~ready_;
    if (stay == 0) return Flow::next;
    w_.groups.push_back({stay, w_.pc, w_.frame, -1, missed_, w_.turns, w_.patience});
    w_.mask &= ~stay;
    ++w_.pc;
    return Flow::moved;
  }

 private:
  Warp& w_;
  const uint32_t* names_;
  const uint32_t mask_;
  uint32_t ready_ = 0;
  uint32_t missed_ = 0;
};

void set_lanes(uint32_t* d, uint32_t lanes, uint32_t value) {
  for (unsigned i = 0; i < kLanes; ++i) d[i] = (lanes >> i & 1) != 0 ? value : d[i];
}

uint32_t reduced(AtomicOp op, bool is_signed, const uint32_t* a, uint32_t lanes) {
  uint32_t sum = a[std::countr_zero(lanes)];
  for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    const uint32_t v = a[std::countr_zero(left)];
    const bool less = is_signed ? static_cast<int32_t>(v) < static_cast<int32_t>(sum) : v < sum;
    switch (op) {
      case AtomicOp::add:
        sum += v;
        break;
      case AtomicOp::min:
        sum = less ? v : sum;
        break;
      case AtomicOp::max:
        sum = less ? sum : v;
        break;
      case AtomicOp::and_:
        sum &= v;
        break;
      case AtomicOp::or_:
        sum |= v;
        break;
      default:
        sum ^= v;
        break;
    }
  }
  return sum;
}

}  // namespace

// a: value, b: lane or distance, c: clamp and segments, list: member mask, predicate or -1.
Flow op_shuffle(Warp& w, const Instr& in, uint32_t mask) {
  const int64_t* more = w.kernel->lists.data() + in.list;
  const Party party(w, static_cast<int32_t>(more[0]), mask);
  mask = party.ready();
  if (mask == 0) return party.wait();
  const uint32_t* a = w.from<uint32_t>(in.a);
  const uint32_t* b = w.from<uint32_t>(in.b);
  const uint32_t* c = w.from<uint32_t>(in.c);
  uint32_t out[kLanes];
  uint32_t valid = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t by = b[i] & 31;
    const uint32_t segment = c[i] >> 8 & 31;
    const uint32_t clamp = c[i] & 31;
    const uint32_t highest = (i & segment) | (clamp & ~segment);
    uint32_t from = i;
    bool inside = true;
    switch (in.mode) {
      case 0:
        inside = i >= by && static_cast<int32_t>(i - by) >= static_cast<int32_t>(highest);
        from = i - by;
        break;
      case 1:
        from = i + by;
        inside = from <= highest;
        break;
      case 2:
        from = i ^ by;
        inside = from <= highest;
        break;
      default:
        from = (i & segment) | (by & ~segment);
        inside = from <= highest;
    }
    if (!inside) from = i;
    valid |= uint32_t{inside} << i;
    out[i] = a[from & 31];
  }
  uint32_t* d = w.to<uint32_t>(in.d);
  for (unsigned i = 0; i < kLanes; ++i) d[i] = (mask >> i & 1) != 0 ? out[i] : d[i];
  if (more[1] >= 0) w.set_predicate(static_cast<int32_t>(more[1]), valid, mask);
  return party.go_on();
}

// a: predicate (signs: negated), b: member mask.
Flow op_vote(Warp& w, const Instr& in, uint32_t mask) {
  const Party party(w, in.b, mask);
  if (party.ready() == 0) return party.wait();
  const uint32_t votes = w.predicate(in.a) ^ (in.signs ? UINT32_MAX : 0);
  party.each([&](uint32_t lanes) {
    const uint32_t yes = votes & lanes;
    if (in.mode == 3) return set_lanes(w.to<uint32_t>(in.d), lanes, yes);
    const bool all = yes == lanes;
    const bool holds = in.mode == 0 ? all : in.mode == 1 ? yes != 0 : all || yes == 0;
    w.set_predicate(in.d, holds ? UINT32_MAX : 0, lanes);
  });
  return party.go_on();
}

// a: value of a_bytes, b: member mask, c: predicate or -1.
Flow op_match(Warp& w, const Instr& in, uint32_t mask) {
  const Party party(w, in.b, mask);
  if (party.ready() == 0) return party.wait();
  const auto value = [&](unsigned i) {
    return in.a_bytes == 8 ? w.from<uint64_t>(in.a)[i] : w.from<uint32_t>(in.a)[i];
  };
  uint32_t alike[kLanes] = {};
  uint32_t of_all = 0;
  party.each([&](uint32_t lanes) {
    for (unsigned i = 0; i < kLanes; ++i) {
      for (unsigned k = 0; k < kLanes; ++k) {
        const bool both = (lanes >> i & lanes >> k & 1) != 0;
        alike[i] |= uint32_t{both && value(i) == value(k)} << k;
      }
    }
    if (alike[std::countr_zero(lanes)] == lanes) of_all |= lanes;
  });
  uint32_t* d = w.to<uint32_t>(in.d);
  for (uint32_t left = party.ready(); left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    d[i] = in.mode == 0 || (of_all >> i & 1) != 0 ? alike[i] : 0;
  }
  if (in.mode == 1 && in.c >= 0) w.set_predicate(in.c, of_all, party.ready());
  return party.go_on();
}

// a: value, b: member mask, signs: of s32.
Flow op_reduce(Warp& w, const Instr& in, uint32_t mask) {
  const Party party(w, in.b, mask);
  if (party.ready() == 0) return party.wait();
  uint32_t a[kLanes];
  std::copy_n(w.from<uint32_t>(in.a), kLanes, a);  // the result may be the same register
  party.each([&](uint32_t lanes) {
    set_lanes(w.to<uint32_t>(in.d), lanes,
              reduced(static_cast<AtomicOp>(in.mode), in.signs, a, lanes));
  });
  return party.go_on();
}

Flow op_active_mask(Warp& w, const Instr& in, uint32_t mask) {
  uint32_t* d = w.to<uint32_t>(in.d);
  for (unsigned i = 0; i < kLanes; ++i) d[i] = (mask >> i & 1) != 0 ? mask : d[i];
  return Flow::next;
}

// d: the leader's lane, c: predicate or -1, b: member mask.
Flow op_elect(Warp& w, const Instr& in, uint32_t mask) {
  const Party party(w, in.b, mask);
  if (party.ready() == 0) return party.wait();
  party.each([&](uint32_t lanes) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
    set_lanes(w.to<uint32_t>(in.d), lanes, leader);
    if (in.c >= 0) w.set_predicate(in.c, 1u << leader, lanes);
  });
  return party.go_on();
}

// flag is set: see release_scattered() in warp.cc.
Flow op_warp_barrier(Warp& w, const Instr& in, uint32_t mask) {
  const Party party(w, in.b, mask);
  return party.ready() == 0 ? party.wait() : party.go_on();
}

// a: barrier, b: threads (count > 1: there), c: predicate of bar.red (signs: negated), d: result.
Flow op_barrier(Warp& w, const Instr& in, uint32_t mask) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  const uint32_t id = w.from<uint32_t>(in.a)[lane];
  const uint32_t threads = in.count > 1 ? w.from<uint32_t>(in.b)[lane] : 0;
  if (id >= 16) {
    w.grid->fail(Fault::illegal_instruction, w, &in, mask, "a block has 16 barriers");
    return Flow::fault;
  }
  if (mask != w.mask) {  // a guarded barrier: those it is not for go on
    w.groups.push_back({w.mask & ~mask, w.pc + 1, w.frame, -1, 0, w.turns, w.patience});
    w.mask = mask;
  }
  Barrier& barrier = w.block->barriers[id];
  w.block->arrive(w, in, mask, id, threads);
  if (in.mode >= 2) {
    const uint32_t yes = (w.predicate(in.c) ^ (in.signs ? UINT32_MAX : 0)) & mask;
    barrier.count_true += static_cast<uint32_t>(std::popcount(yes));
    barrier.voted += static_cast<uint32_t>(std::popcount(mask));
    w.block->waiting.push_back(
        {w.index, mask, w.registers, in.d, static_cast<uint8_t>(id << 4 | (in.mode - 1))});
  }
  const bool done = w.block->complete(id);
  ++w.pc;
  if (done || in.mode == 1) return Flow::moved;
  w.barrier = static_cast<int16_t>(id);
  return Flow::wait;
}

}  // namespace sealane::ptx
