// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Atomic operations: real ones of the host in global memory, which others share; plain ones in
// shared memory, which belongs to the worker. Lanes go one after the other.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

// What an operation makes of the old value. `b` and `c` are its operands.
template <typename T>
T integer_op(AtomicOp op, T old, T b, T c) {
  switch (op) {
    case AtomicOp::add:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(b));
    case AtomicOp::min:
      return std::min(old, b);
    case AtomicOp::max:
      return std::max(old, b);
    case AtomicOp::inc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::dec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case AtomicOp::and_:
      return old & b;
    case AtomicOp::or_:
      return old | b;
    case AtomicOp::xor_:
      return old ^ b;
    case AtomicOp::exch:
      return b;
    case AtomicOp::cas:
      return old == b ? c : old;
  }
  return old;
}

uint16_t half_op(AtomicOp op, bool brain, uint16_t old, uint16_t b) {
  const float x = brain ? bf16_to_float(old) : half_to_float(old);
  const float y = brain ? bf16_to_float(b) : half_to_float(b);
  const float z = op == AtomicOp::add   ? x + y
                  : op == AtomicOp::min ? std::fmin(x, y)
                                        : std::fmax(x, y);
  return brain ? float_to_bf16(z) : float_to_half(z);
}

template <typename Word, typename Fn>
Word exchange(uint8_t* memory, bool mine, Fn fn) {
  auto* at = reinterpret_cast<Word*>(memory);
  if (mine) {
    const Word old = *at;
    *at = fn(old);
    return old;
  }
  Word old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  Word made = fn(old);
  while (!__atomic_compare_exchange_n(at, &old, made, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    made = fn(old);
  }
  return old;
}

uint64_t apply(const Instr& in, Type type, uint8_t* memory, bool mine, uint64_t b, uint64_t c) {
  const auto op = static_cast<AtomicOp>(in.mode);
  switch (type) {
    case Type::s32:
      return exchange<uint32_t>(memory, mine, [&](uint32_t old) {
        return static_cast<uint32_t>(integer_op(op, static_cast<int32_t>(old),
                                                static_cast<int32_t>(b), static_cast<int32_t>(c)));
      });
    case Type::u32:
    case Type::b32:
      return exchange<uint32_t>(memory, mine, [&](uint32_t old) {
        return integer_op(op, old, static_cast<uint32_t>(b), static_cast<uint32_t>(c));
      });
    case Type::s64:
      return exchange<uint64_t>(memory, mine, [&](uint64_t old) {
        return static_cast<uint64_t>(integer_op(op, static_cast<int64_t>(old),
                                                static_cast<int64_t>(b), static_cast<int64_t>(c)));
      });
    case Type::u64:
    case Type::b64:
      return exchange<uint64_t>(memory, mine,
                                [&](uint64_t old) { return integer_op(op, old, b, c); });
    case Type::b16:
    case Type::u16:
      return exchange<uint16_t>(memory, mine, [&](uint16_t old) {
        return integer_op(op, old, static_cast<uint16_t>(b), static_cast<uint16_t>(c));
      });
    case Type::f32:
      return exchange<uint32_t>(memory, mine, [&](uint32_t old) {
        return std::bit_cast<uint32_t>(std::bit_cast<float>(old) +
                                       std::bit_cast<float>(static_cast<uint32_t>(b)));
      });
    case Type::f64:
      return exchange<uint64_t>(memory, mine, [&](uint64_t old) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
      });
    case Type::f16:
    case Type::bf16:
      return exchange<uint16_t>(memory, mine, [&](uint16_t old) {
        return half_op(op, type == Type::bf16, old, static_cast<uint16_t>(b));
      });
    default:  // f16x2, bf16x2
      return exchange<uint32_t>(memory, mine, [&](uint32_t old) {
        const bool brain = type == Type::bf16x2;
        const uint16_t low =
            half_op(op, brain, static_cast<uint16_t>(old), static_cast<uint16_t>(b));
        const uint16_t high =
            half_op(op, brain, static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
        return static_cast<uint32_t>(high) << 16 | low;
      });
  }
}

}  // namespace

// count: the Type; b and c: operands; d_bytes: their width.
Flow op_atomic(Warp& w, const Instr& in, uint32_t mask) {
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  // A lock is taken and waited for by these; counters and sums wait for nobody.
  const auto op = static_cast<AtomicOp>(in.mode);
  if (op == AtomicOp::cas || op == AtomicOp::exch) note_spin(w);
  const auto type = static_cast<Type>(in.count);
  const uint8_t* b = w.from<uint8_t>(in.b);
  const uint8_t* c = w.from<uint8_t>(in.c);
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    uint8_t* memory = lane_memory(w, in, i, in.space, addresses[i], in.bytes);
    if (memory == nullptr) return Flow::fault;
    const uint8_t* shared = w.block->shared.data();
    const bool mine = memory >= shared && memory < shared + w.block->shared.size();
    if (mine && w.block->checker) {
      const auto at = static_cast<uint64_t>(memory - shared);
      w.block->checker->acquire(w.index, at);
      w.block->checker->access(w, in, i, at, in.bytes, true);
      w.block->checker->release(w.index, at);
    }
    uint64_t first = 0, second = 0;
    std::memcpy(&first, b + size_t{i} * in.d_bytes, in.d_bytes);
    std::memcpy(&second, c + size_t{i} * in.d_bytes, in.d_bytes);
    const uint64_t old = apply(in, type, memory, mine, first, second);
    if (!in.signs) std::memcpy(w.to<uint8_t>(in.d) + size_t{i} * in.d_bytes, &old, in.d_bytes);
    if (!mine) w.global_bytes += in.bytes;
  }
  return Flow::next;
}

}  // namespace sealane::ptx
