// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How lanes' addresses become bytes of the host: spaces, windows, bounds and alignment.
//
// Used by the worker that runs the warp's block.

#include "ptx/exec/access.h"

#include <algorithm>
#include <bit>

#include "ptx/exec/grid.h"

namespace sealane::ptx {
namespace {

uint8_t* fail_access(Warp& w, const Instr& in, unsigned lane, Fault fault, uint64_t address) {
  w.grid->fail(fault, w, &in, 1u << lane,
               fault == Fault::misaligned_address ? "misaligned access" : "access out of bounds",
               &address);
  return nullptr;
}

// Each lane's address is the one's before plus the stride: differences, which are vectorised where
// products of 64 bits are not. (Addresses that wrap around are not in any memory.)
template <typename T>
bool in_a_row(const T* a, uint32_t stride) {
  T apart = 0;
  const T step = stride;
  for (unsigned i = 0; i + 1 < kLanes; ++i) apart |= (a[i + 1] - a[i]) ^ step;
  return apart == 0;
}

}  // namespace

uint8_t* whole_row(Warp& w, const Instr& in, uint32_t mask, uint32_t bytes) {
  if (mask != kAllLanes || in.flag || w.block->checker) return nullptr;
  uint64_t start = static_cast<uint64_t>(in.imm);
  if (in.a_bytes == 8) {
    const uint64_t* a = w.from<uint64_t>(in.a);
    if (!in_a_row(a, bytes)) return nullptr;
    start += a[0];
  } else {
    const uint32_t* a = w.from<uint32_t>(in.a);
    if (in.space != Space::shared || !in_a_row(a, bytes)) return nullptr;
    start = static_cast<uint32_t>(start + a[0]);
  }
  if ((start & (bytes - 1)) != 0) return nullptr;
  const uint64_t span = uint64_t{bytes} * kLanes;
  switch (in.space) {
    case Space::shared: {
      const uint64_t size = w.block->shared.size();
      return start < size && span <= size - start ? w.block->shared.data() + start : nullptr;
    }
    case Space::generic:
      if ((start >> 48) != 0) return nullptr;
      [[fallthrough]];
    case Space::global: {
      uint8_t* memory = w.block->global(start, span);
      if (memory != nullptr) w.global_bytes += span;
      return memory;
    }
    default:
      return nullptr;
  }
}

void classify(Pattern& p, uint32_t mask, uint32_t stride) {
  p.first = static_cast<unsigned>(std::countr_zero(mask));
  p.last = 31 - static_cast<unsigned>(std::countl_zero(mask));
  const uint64_t start = p.addresses[p.first];
  const uint64_t base = start - uint64_t{p.first} * stride;
  uint64_t unlike = 0;
  uint64_t apart = 0;
  if (mask == kAllLanes) {
    p.same = in_a_row(p.addresses, 0);
    p.row = in_a_row(p.addresses, stride);
    return;
  }
  for (unsigned i = 0; i < kLanes; ++i) {
    const uint64_t active = 0 - static_cast<uint64_t>(mask >> i & 1);
    unlike |= (p.addresses[i] ^ start) & active;
    apart |= (p.addresses[i] ^ (base + uint64_t{i} * stride)) & active;
  }
  p.same = unlike == 0;
  p.row = apart == 0;
}

Space common_space(Pattern& p, const Instr& in, uint32_t mask) {
  if (in.space != Space::generic) return in.space;
  const uint64_t window = p.addresses[std::countr_zero(mask)] >> 48;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    if (p.addresses[std::countr_zero(left)] >> 48 != window) return Space::generic;
  }
  if (window == 0) return Space::global;
  const Space space = window == kSharedWindow >> 48  ? Space::shared
                      : window == kLocalWindow >> 48 ? Space::local
                                                     : Space::generic;
  if (space == Space::generic) return space;
  for (uint64_t& address : p.addresses) address &= (uint64_t{1} << 48) - 1;
  return space;
}

uint8_t* together(Warp& w, const Pattern& p, Space space, uint32_t bytes) {
  const uint64_t start = p.addresses[p.first];
  const uint64_t span = p.same ? bytes : uint64_t{p.last - p.first + 1} * bytes;
  if (!p.same && !p.row) return nullptr;
  if ((start & (bytes - 1)) != 0) return nullptr;
  if (space == Space::shared) {
    const uint64_t size = w.block->shared.size();
    return start < size && span <= size - start ? w.block->shared.data() + start : nullptr;
  }
  if (space == Space::global || space == Space::constant) return w.block->global(start, span);
  return nullptr;
}

Spread spread(Warp& w, const Pattern& p, Space space, uint32_t mask, uint32_t bytes) {
  uint64_t low = UINT64_MAX, high = 0, bits = 0;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const uint64_t address = p.addresses[std::countr_zero(left)];
    low = std::min(low, address);
    high = std::max(high, address);
    bits |= address;
  }
  if ((bits & (bytes - 1)) != 0 || high > UINT64_MAX - bytes) return {};
  if (space == Space::shared && high + bytes <= w.block->shared.size()) {
    return {true, reinterpret_cast<uintptr_t>(w.block->shared.data()), 0};
  }
  if (space == Space::local && high + bytes <= w.stack_bytes) {
    return {true, reinterpret_cast<uintptr_t>(w.stack), w.stack_bytes};
  }
  if (space != Space::global && space != Space::constant) return {};
  uint8_t* memory = w.block->global(low, high + bytes - low);
  return {memory != nullptr, reinterpret_cast<uintptr_t>(memory) - low, 0};
}

void lane_addresses(const Warp& w, const Instr& in, uint64_t* out) {
  const auto offset = static_cast<uint64_t>(in.imm) + (in.flag ? w.frame->stack_base : 0);
  if (in.a_bytes == 8) {
    const uint64_t* a = w.from<uint64_t>(in.a);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = a[i] + offset;
  } else {
    const uint32_t* a = w.from<uint32_t>(in.a);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = static_cast<uint32_t>(a[i] + offset);
  }
}

uint8_t* lane_memory(Warp& w, const Instr& in, unsigned lane, Space space, uint64_t address,
                     uint32_t bytes) {
  const uint64_t asked = address;
  if (space == Space::generic) {
    const uint64_t window = address >> 48;
    const uint64_t inside = address & ((uint64_t{1} << 48) - 1);
    if (window == 0) space = Space::global;
    if (window == kSharedWindow >> 48) space = Space::shared, address = inside;
    if (window == kLocalWindow >> 48) space = Space::local, address = inside;
    if (window == kParamWindow >> 48) space = Space::param, address = inside;
  }
  uint8_t* memory = nullptr;
  uint64_t size = 0;
  switch (space) {
    case Space::shared:
      size = w.block->shared.size();
      memory = w.block->shared.data();
      break;
    case Space::local:
      size = w.stack_bytes;
      memory = w.stack + size_t{lane} * w.stack_bytes;
      break;
    case Space::param:
      size = w.grid->parameters.size();
      memory = w.grid->parameters.data();
      break;
    case Space::global:
    case Space::constant:
      if ((address & (std::min(bytes, 16u) - 1)) != 0) {
        return fail_access(w, in, lane, Fault::misaligned_address, asked);
      }
      if (uint8_t* found = w.block->global(address, bytes)) return found;
      return fail_access(w, in, lane, Fault::illegal_address, asked);
    default:
      break;
  }
  if (size < bytes || address > size - bytes) {
    return fail_access(w, in, lane, Fault::illegal_address, asked);
  }
  if ((address & (std::min(bytes, 16u) - 1)) != 0) {
    return fail_access(w, in, lane, Fault::misaligned_address, asked);
  }
  return memory + address;
}

}  // namespace sealane::ptx
