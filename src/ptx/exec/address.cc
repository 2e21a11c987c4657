// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses as values, fences, and copies to shared memory that somebody waits for later.
//
// Each is called by the worker that runs the warp's block.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"

namespace sealane::ptx {
namespace {

template <typename Fn>
Flow map_addresses(Warp& w, const Instr& in, uint32_t mask, Fn fn) {
  if (mask == kAllLanes && in.a_bytes == 8 && in.d_bytes == 8) {
    const uint64_t* a = w.from<uint64_t>(in.a);
    uint64_t* d = w.to<uint64_t>(in.d);
    for (unsigned i = 0; i < kLanes; ++i) d[i] = fn(a[i]);
    return Flow::next;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const uint64_t from = in.a_bytes == 8 ? w.from<uint64_t>(in.a)[i] : w.from<uint32_t>(in.a)[i];
    const uint64_t to = fn(from);
    if (in.d_bytes == 8)
      w.to<uint64_t>(in.d)[i] = to;
    else
      w.to<uint32_t>(in.d)[i] = static_cast<uint32_t>(to);
  }
  return Flow::next;
}

}  // namespace

Flow op_local_address(Warp& w, const Instr& in, uint32_t mask) {
  const uint64_t address = w.frame->stack_base + static_cast<uint64_t>(in.imm);
  if (in.d_bytes == 8)
    broadcast(w.to<uint64_t>(in.d), address, mask);
  else
    broadcast(w.to<uint32_t>(in.d), address, mask);
  return Flow::next;
}

Flow op_to_generic(Warp& w, const Instr& in, uint32_t mask) {
  const auto window = static_cast<uint64_t>(in.imm);
  return map_addresses(w, in, mask, [=](uint64_t a) { return a + window; });
}

Flow op_from_generic(Warp& w, const Instr& in, uint32_t mask) {
  const auto window = static_cast<uint64_t>(in.imm);
  return map_addresses(w, in, mask, [=](uint64_t a) { return a - window; });
}

Flow op_is_space(Warp& w, const Instr& in, uint32_t mask) {
  const auto window = static_cast<uint64_t>(in.imm) >> 48;
  uint32_t bits = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const uint64_t a = in.a_bytes == 8 ? w.from<uint64_t>(in.a)[i] : w.from<uint32_t>(in.a)[i];
    bits |= uint32_t{a >> 48 == window} << i;
  }
  w.set_predicate(in.d, bits, mask);
  return Flow::next;
}

Flow op_fence(Warp&, const Instr&, uint32_t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Flow::next;
}

// Done at once: nobody may look before the wait, so that is soon enough.
SEALANE_UNWATCHED Flow op_copy_async(Warp& w, const Instr& in, uint32_t mask) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const uint64_t to = (in.d_bytes == 8 ? w.from<uint64_t>(in.d)[i] : w.from<uint32_t>(in.d)[i]) +
                        static_cast<uint64_t>(w.kernel->lists[in.list]);
    const uint64_t from = w.from<uint64_t>(in.a)[i] + static_cast<uint64_t>(in.imm);
    uint32_t have = in.bytes;
    if (in.count > 1) have = std::min<uint32_t>(have, w.from<uint32_t>(in.c)[i]);
    if (in.signs && (w.predicate(in.b) >> i & 1) != 0) have = 0;  // ignore-src
    uint8_t* memory = lane_memory(w, in, i, Space::shared, to, in.bytes);
    if (memory == nullptr) return Flow::fault;
    if (w.block->checker) w.block->checker->access(w, in, i, to, in.bytes, true);
    std::memset(memory, 0, in.bytes);
    if (have == 0) continue;
    const uint8_t* source = lane_memory(w, in, i, Space::global, from, in.bytes);
    if (source == nullptr) return Flow::fault;
    std::memcpy(memory, source, have);
    w.global_bytes += have;
  }
  return Flow::next;
}

}  // namespace sealane::ptx
