// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// wmma.*: PTX leaves it open which lane holds which element. Here a matrix's elements, row by row,
// fill the registers of lane 0, then of lane 1, and begin again where there are more places than
// elements (so each element has as many copies as on a GPU, and arithmetic on a fragment works).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

constexpr unsigned kElementsMax = 512;

unsigned element_bytes(const WarpMatrix& m) { return m.type == Type::tf32 ? 4 : bytes_of(m.type); }

// visit(element, bytes of its place) for every place.
template <typename W, typename Visit>
void each_place(W& w, const WarpMatrix& m, Visit visit) {
  const unsigned bytes = element_bytes(m);
  const unsigned room = bytes == 8 ? 8 : 4;
  const unsigned per_lane = m.registers * room / bytes;
  const unsigned elements = m.rows * m.columns;
  for (unsigned slot = 0; slot < per_lane * kLanes; ++slot) {
    const unsigned lane = slot / per_lane;
    const unsigned inside = slot % per_lane * bytes;
    const auto place = static_cast<int32_t>(w.kernel->lists[m.places + inside / room]);
    visit(slot % elements, place, size_t{lane} * room + inside % room);
  }
}

template <typename T>
T number_of(Type type, uint64_t bits) {
  switch (type) {
    case Type::f16:
      return static_cast<T>(half_to_float(static_cast<uint16_t>(bits)));
    case Type::bf16:
      return static_cast<T>(bf16_to_float(static_cast<uint16_t>(bits)));
    case Type::tf32:
      return static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(bits & 0xffffe000)));
    case Type::f32:
      return static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Type::s8:
      return static_cast<T>(static_cast<int8_t>(bits));
    case Type::u8:
      return static_cast<T>(static_cast<uint8_t>(bits));
    case Type::s32:
      return static_cast<T>(static_cast<int32_t>(bits));
    default:
      return static_cast<T>(std::bit_cast<double>(bits));
  }
}

uint64_t bits_of(Type type, double value) {
  if (type == Type::f64) return std::bit_cast<uint64_t>(value);
  const auto single = static_cast<float>(value);
  return type == Type::f16 ? float_to_half(single) : std::bit_cast<uint32_t>(single);
}

template <typename T>
void read_matrix(const Warp& w, const WarpMatrix& m, T* out) {
  each_place(w, m, [&](unsigned element, int32_t place, size_t offset) {
    uint64_t bits = 0;
    std::memcpy(&bits, w.from<uint8_t>(place) + offset, element_bytes(m));
    out[element] = number_of<T>(m.type, bits);
  });
}

void write_matrix(Warp& w, const WarpMatrix& m, const uint64_t* bits) {
  each_place(w, m, [&](unsigned element, int32_t place, size_t offset) {
    std::memcpy(w.to<uint8_t>(place) + offset, &bits[element], element_bytes(m));
  });
}

// d = a b + c, of which the types are given by the four matrices d, a, b, c.
template <typename T, typename Bits>
void multiply(Warp& w, const WarpMatrix* m, Bits to_bits) {
  T a[kElementsMax], b[kElementsMax], c[kElementsMax];
  read_matrix(w, m[1], a);
  read_matrix(w, m[2], b);
  read_matrix(w, m[3], c);
  uint64_t d[kElementsMax];
  for (unsigned row = 0; row < m[0].rows; ++row) {
    for (unsigned column = 0; column < m[0].columns; ++column) {
      T sum = c[row * m[0].columns + column];
      for (unsigned k = 0; k < m[1].columns; ++k) {
        sum += a[row * m[1].columns + k] * b[k * m[2].columns + column];
      }
      d[row * m[0].columns + column] = to_bits(sum);
    }
  }
  write_matrix(w, m[0], d);
}

// Where an element is in memory, nullptr after the grid has failed.
uint8_t* element_memory(Warp& w, const Instr& in, const WarpMatrix& m, uint64_t start,
                        uint64_t stride, unsigned element) {
  const unsigned row = element / m.columns;
  const unsigned column = element % m.columns;
  const uint64_t index = m.by_column ? column * stride + row : row * stride + column;
  const uint64_t address = start + index * element_bytes(m);
  if (w.block->checker) {
    const bool writes = in.run == op_store_warp_matrix;
    w.block->checker->accesses(w, in, in.space, &address, 1, element_bytes(m), writes);
  }
  return lane_memory(w, in, 0, in.space, address, element_bytes(m));
}

}  // namespace

// list: of Kernel::matrices; b: from row to row (column to column), in elements.
Flow op_load_warp_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  const WarpMatrix& m = w.kernel->matrices[in.list];
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  const uint32_t stride = w.from<uint32_t>(in.b)[0];
  uint64_t bits[kElementsMax] = {};
  for (unsigned i = 0; i < m.rows * m.columns; ++i) {
    const uint8_t* memory = element_memory(w, in, m, addresses[0], stride, i);
    if (memory == nullptr) return Flow::fault;
    std::memcpy(&bits[i], memory, element_bytes(m));
  }
  write_matrix(w, m, bits);
  return Flow::next;
}

Flow op_store_warp_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  const WarpMatrix& m = w.kernel->matrices[in.list];
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  const uint32_t stride = w.from<uint32_t>(in.b)[0];
  bool well = true;
  each_place(w, m, [&](unsigned element, int32_t place, size_t offset) {
    if (!well) return;
    uint8_t* memory = element_memory(w, in, m, addresses[0], stride, element);
    well = memory != nullptr;
    if (well) std::memcpy(memory, w.from<uint8_t>(place) + offset, element_bytes(m));
  });
  return well ? Flow::next : Flow::fault;
}

// list: of Kernel::matrices: d, a, b, c; signs: .satfinite.
Flow op_multiply_warp_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  const WarpMatrix* m = w.kernel->matrices.data() + in.list;
  if (m[0].type == Type::s32) {
    multiply<int64_t>(w, m, [&](int64_t sum) {
      const int64_t cut = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      return static_cast<uint64_t>(static_cast<uint32_t>(in.signs ? cut : sum));
    });
  } else {
    multiply<double>(w, m, [&](double sum) { return bits_of(m[0].type, sum); });
  }
  return Flow::next;
}

}  // namespace sealane::ptx
