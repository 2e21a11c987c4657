// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores, by rows, single places or lanes as their addresses allow (access.h).
//
// Each is called by the worker that runs the warp's block.

#include <bit>
#include <cstring>
#include <type_traits>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"
#include "ptx/exec/rows.h"

namespace sealane::ptx {
namespace {

template <typename T>
SEALANE_UNWATCHED uint64_t read_bits(const uint8_t* at, bool sign) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return sign ? static_cast<uint64_t>(std::make_signed_t<T>(value)) : value;
}

// Known widths: a copy of as many bytes as a variable says costs as much as ten instructions.
SEALANE_UNWATCHED uint64_t read_element(const uint8_t* at, uint32_t bytes, bool sign) {
  switch (bytes) {
    case 1:
      return read_bits<uint8_t>(at, sign);
    case 2:
      return read_bits<uint16_t>(at, sign);
    case 4:
      return read_bits<uint32_t>(at, sign);
    default:
      return read_bits<uint64_t>(at, sign);
  }
}

template <typename T>
SEALANE_UNWATCHED void load_row(T* d, const uint8_t* from, uint32_t mask, unsigned first,
                                uint32_t stride) {
  if (mask == kAllLanes && stride == sizeof(T)) {
    move_row<T>(d, from);
    return;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    std::memcpy(d + i, from + size_t{i - first} * stride, sizeof(T));
  }
}

// One element of every lane; lane i's is at memory + (i - first) * stride.
SEALANE_UNWATCHED void load_strided(Warp& w, const Instr& in, int32_t d, const uint8_t* memory,
                                    uint32_t mask, unsigned first, uint32_t stride) {
  if (in.d_bytes == in.bytes && in.bytes == 4) {
    return load_row(w.to<uint32_t>(d), memory, mask, first, stride);
  }
  if (in.d_bytes == in.bytes && in.bytes == 8) {
    return load_row(w.to<uint64_t>(d), memory, mask, first, stride);
  }
  if (in.d_bytes == in.bytes && in.bytes == 2) {
    return load_row(w.to<uint16_t>(d), memory, mask, first, stride);
  }
  uint8_t* to = w.to<uint8_t>(d);
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const uint64_t bits = read_element(memory + size_t{i - first} * stride, in.bytes, in.signs);
    std::memcpy(to + size_t{i} * in.d_bytes, &bits, in.d_bytes);
  }
}

SEALANE_UNWATCHED void load_same(Warp& w, const Instr& in, int32_t d, const uint8_t* memory,
                                 uint32_t mask) {
  const uint64_t bits = read_element(memory, in.bytes, in.signs);
  if (in.d_bytes == 2) broadcast(w.to<uint16_t>(d), bits, mask);
  if (in.d_bytes == 4) broadcast(w.to<uint32_t>(d), bits, mask);
  if (in.d_bytes == 8) broadcast(w.to<uint64_t>(d), bits, mask);
}

SEALANE_UNWATCHED void store_strided(Warp& w, const Instr& in, int32_t a, uint8_t* memory,
                                     uint32_t mask, unsigned first, uint32_t stride) {
  const uint8_t* from = w.from<uint8_t>(a);
  if (mask == kAllLanes && stride == in.bytes && in.d_bytes == in.bytes) {
    if (in.bytes == 4) return move_row<uint32_t>(memory, from);
    if (in.bytes == 8) return move_row<uint64_t>(memory, from);
    std::memcpy(memory, from, size_t{in.bytes} * kLanes);
    return;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    std::memcpy(memory + size_t{i - first} * stride, from + size_t{i} * in.d_bytes, in.bytes);
  }
}

int32_t part(const Warp& w, const Instr& in, unsigned k) {
  return in.count > 1 ? static_cast<int32_t>(w.kernel->lists[in.list + k]) : in.d;
}

template <typename T, unsigned Parts>
void load_vector_row(Warp& w, const Instr& in, const uint8_t* memory) {
  T* d[Parts];
  for (unsigned k = 0; k < Parts; ++k) d[k] = w.to<T>(part(w, in, k));
  split_row(d, memory);
}

template <typename T, unsigned Parts>
void store_vector_row(Warp& w, const Instr& in, uint8_t* memory) {
  const T* a[Parts];
  for (unsigned k = 0; k < Parts; ++k) a[k] = w.from<T>(part(w, in, k));
  join_row(memory, a);
}

// What a row of whole vectors needs, nullptr: go by elements.
using LoadRow = void (*)(Warp&, const Instr&, const uint8_t*);
using StoreRow = void (*)(Warp&, const Instr&, uint8_t*);

LoadRow row_loader(const Instr& in, uint32_t mask) {
  if (mask != kAllLanes || in.bytes != in.d_bytes) return nullptr;
  if (in.bytes == 4 && in.count == 4) return load_vector_row<uint32_t, 4>;
  if (in.bytes == 4 && in.count == 2) return load_vector_row<uint32_t, 2>;
  if (in.bytes == 8 && in.count == 2) return load_vector_row<uint64_t, 2>;
  return nullptr;
}

StoreRow row_storer(const Instr& in, uint32_t mask) {
  if (mask != kAllLanes || in.bytes != in.d_bytes) return nullptr;
  if (in.bytes == 4 && in.count == 4) return store_vector_row<uint32_t, 4>;
  if (in.bytes == 4 && in.count == 2) return store_vector_row<uint32_t, 2>;
  if (in.bytes == 8 && in.count == 2) return store_vector_row<uint64_t, 2>;
  return nullptr;
}

// Rows, lane i's vector of `bytes` at memory + (i - first) * bytes.
void load_rows(Warp& w, const Instr& in, const uint8_t* memory, uint32_t mask, unsigned first,
               uint32_t bytes) {
  if (const LoadRow load = row_loader(in, mask); load != nullptr) return load(w, in, memory);
  for (unsigned k = 0; k < in.count; ++k, memory += in.bytes) {
    load_strided(w, in, part(w, in, k), memory, mask, first, bytes);
  }
}

void store_rows(Warp& w, const Instr& in, uint8_t* memory, uint32_t mask, unsigned first,
                uint32_t bytes) {
  if (const StoreRow store = row_storer(in, mask); store != nullptr) return store(w, in, memory);
  for (unsigned k = 0; k < in.count; ++k, memory += in.bytes) {
    store_strided(w, in, part(w, in, k), memory, mask, first, bytes);
  }
}

template <typename T>
SEALANE_UNWATCHED void gather(T* d, const Pattern& p, const Spread& s, size_t offset,
                              uint32_t mask) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    std::memcpy(d + i, s.at(p.addresses[i], i) + offset, sizeof(T));
  }
}

template <typename T>
SEALANE_UNWATCHED void scatter(const T* a, const Pattern& p, const Spread& s, size_t offset,
                               uint32_t mask) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    std::memcpy(s.at(p.addresses[i], i) + offset, a + i, sizeof(T));
  }
}

// A vector that others may write or read meanwhile is one access of the host for each lane, as it
// is one transaction of a GPU: a flag that was written beside data is never seen without it.
struct Whole {
  alignas(16) uint8_t bytes[32];
};

typedef long long Vector16 __attribute__((vector_size(16), aligned(1)));

SEALANE_UNWATCHED void load_whole(Whole& to, const uint8_t* from, uint32_t bytes) {
  if (bytes == 8) {
    const uint64_t word = *reinterpret_cast<const volatile uint64_t*>(from);
    std::memcpy(to.bytes, &word, 8);
    return;
  }
  for (uint32_t at = 0; at + 16 <= bytes; at += 16) {
    const Vector16 part = *reinterpret_cast<const volatile Vector16*>(from + at);
    std::memcpy(to.bytes + at, &part, 16);
  }
}

SEALANE_UNWATCHED void store_whole(uint8_t* to, const Whole& from, uint32_t bytes) {
  if (bytes == 8) {
    uint64_t word;
    std::memcpy(&word, from.bytes, 8);
    *reinterpret_cast<volatile uint64_t*>(to) = word;
    return;
  }
  for (uint32_t at = 0; at + 16 <= bytes; at += 16) {
    Vector16 part;
    std::memcpy(&part, from.bytes + at, 16);
    *reinterpret_cast<volatile Vector16*>(to + at) = part;
  }
}

bool in_one_piece(const Instr& in, uint32_t bytes) {
  return in.mode != 0 && in.count > 1 && (bytes == 8 || bytes == 16 || bytes == 32);
}

Flow load_vectors(Warp& w, const Instr& in, const Pattern& p, Space space, uint32_t mask) {
  const uint32_t bytes = uint32_t{in.bytes} * in.count;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const uint8_t* memory = lane_memory(w, in, i, space, p.addresses[i], bytes);
    if (memory == nullptr) return Flow::fault;
    Whole whole;
    load_whole(whole, memory, bytes);
    for (unsigned k = 0; k < in.count; ++k) {
      const uint64_t bits = read_element(whole.bytes + k * in.bytes, in.bytes, in.signs);
      std::memcpy(w.to<uint8_t>(part(w, in, k)) + size_t{i} * in.d_bytes, &bits, in.d_bytes);
    }
  }
  return Flow::next;
}

Flow store_vectors(Warp& w, const Instr& in, const Pattern& p, Space space, uint32_t mask) {
  const uint32_t bytes = uint32_t{in.bytes} * in.count;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    uint8_t* memory = lane_memory(w, in, i, space, p.addresses[i], bytes);
    if (memory == nullptr) return Flow::fault;
    Whole whole;
    for (unsigned k = 0; k < in.count; ++k) {
      const uint8_t* from = w.from<uint8_t>(part(w, in, k)) + size_t{i} * in.d_bytes;
      std::memcpy(whole.bytes + k * in.bytes, from, in.bytes);
    }
    store_whole(memory, whole, bytes);
  }
  return Flow::next;
}

}  // namespace

SEALANE_UNWATCHED Flow op_load(Warp& w, const Instr& in, uint32_t mask) {
  const uint32_t bytes = uint32_t{in.bytes} * in.count;
  if (const uint8_t* memory = in.mode == 0 ? whole_row(w, in, mask, bytes) : nullptr) {
    load_rows(w, in, memory, mask, 0, bytes);
    return Flow::next;
  }
  Pattern p;
  lane_addresses(w, in, p.addresses);
  classify(p, mask, bytes);
  if (in.mode != 0) note_spin(w);
  const Space space = common_space(p, in, mask);
  const bool global = space == Space::global || space == Space::generic;
  if (global)
    w.global_bytes += p.same ? bytes : uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
  if (w.block->checker && in.mode == 0) {
    w.block->checker->accesses(w, in, space, p.addresses, mask, bytes, false);
  }
  if (in_one_piece(in, bytes)) return load_vectors(w, in, p, space, mask);
  if (const uint8_t* memory = together(w, p, space, bytes)) {
    if (!p.same) {
      load_rows(w, in, memory, mask, p.first, bytes);
      return Flow::next;
    }
    for (unsigned k = 0; k < in.count; ++k, memory += in.bytes) {
      load_same(w, in, part(w, in, k), memory, mask);
    }
    return Flow::next;
  }
  const bool words = in.bytes == in.d_bytes && (in.bytes == 4 || in.bytes == 8);
  if (const Spread s = words ? spread(w, p, space, mask, bytes) : Spread{}; s.found) {
    for (unsigned k = 0; k < in.count; ++k) {
      const int32_t d = part(w, in, k);
      if (in.bytes == 4)
        gather(w.to<uint32_t>(d), p, s, size_t{k} * 4, mask);
      else
        gather(w.to<uint64_t>(d), p, s, size_t{k} * 8, mask);
    }
    return Flow::next;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const uint8_t* memory = lane_memory(w, in, i, space, p.addresses[i], bytes);
    if (memory == nullptr) return Flow::fault;
    uint8_t copy[64];
    std::memcpy(copy, memory, bytes);
    for (unsigned k = 0; k < in.count; ++k) {
      const uint64_t bits = read_element(copy + k * in.bytes, in.bytes, in.signs);
      std::memcpy(w.to<uint8_t>(part(w, in, k)) + size_t{i} * in.d_bytes, &bits, in.d_bytes);
    }
  }
  return Flow::next;
}

SEALANE_UNWATCHED Flow op_store(Warp& w, const Instr& in, uint32_t mask) {
  const uint32_t bytes = uint32_t{in.bytes} * in.count;
  const bool plain = in.mode == 0 && in.space != Space::constant;
  if (uint8_t* memory = plain ? whole_row(w, in, mask, bytes) : nullptr) {
    store_rows(w, in, memory, mask, 0, bytes);
    return Flow::next;
  }
  Pattern p;
  lane_addresses(w, in, p.addresses);
  classify(p, mask, bytes);
  const Space space = common_space(p, in, mask);
  const bool global = space == Space::global || space == Space::generic;
  if (global) w.global_bytes += uint64_t{bytes} * static_cast<unsigned>(std::popcount(mask));
  if (w.block->checker) w.block->checker->accesses(w, in, space, p.addresses, mask, bytes, true);
  if (in_one_piece(in, bytes)) return store_vectors(w, in, p, space, mask);
  uint8_t* memory = p.row ? together(w, p, space, bytes) : nullptr;
  if (memory != nullptr && space != Space::constant) {
    store_rows(w, in, memory, mask, p.first, bytes);
    return Flow::next;
  }
  const bool words = in.bytes == in.d_bytes && (in.bytes == 4 || in.bytes == 8);
  const bool writes = words && space != Space::constant;
  if (const Spread s = writes ? spread(w, p, space, mask, bytes) : Spread{}; s.found) {
    for (unsigned k = 0; k < in.count; ++k) {
      const int32_t from = part(w, in, k);
      if (in.bytes == 4)
        scatter(w.from<uint32_t>(from), p, s, size_t{k} * 4, mask);
      else
        scatter(w.from<uint64_t>(from), p, s, size_t{k} * 8, mask);
    }
    return Flow::next;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    uint8_t* to = lane_memory(w, in, i, space, p.addresses[i], bytes);
    if (to == nullptr) return Flow::fault;
    for (unsigned k = 0; k < in.count; ++k) {
      const uint8_t* from = w.from<uint8_t>(part(w, in, k)) + size_t{i} * in.d_bytes;
      std::memcpy(to + k * in.bytes, from, in.bytes);
    }
  }
  return Flow::next;
}

Flow op_load_parameter(Warp& w, const Instr& in, uint32_t mask) {
  const uint8_t* memory = w.grid->parameters.data() + in.imm;
  for (unsigned k = 0; k < in.count; ++k) {
    load_same(w, in, part(w, in, k), memory + k * in.bytes, mask);
  }
  return Flow::next;
}

}  // namespace sealane::ptx
