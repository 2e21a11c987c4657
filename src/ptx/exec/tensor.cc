// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrices held by a warp. Fragments: with g = lane / 4, t = lane % 4 and e elements to a register,
//   A: register r, part s is row g + 8 (r & 1), column t e + s + 4 e (r >> 1)
//   B: register r, part s is row t e + s + 4 e r, column g
//   C: element i is row g + 8 (i >> 1), column 2 t + (i & 1)

#include <bit>
#include <cstring>

#include "ptx/exec/access.h"
#include "ptx/exec/grid.h"
#include "ptx/exec/handlers.h"
#include "ptx/ops/half.h"

namespace sealane::ptx {
namespace {

constexpr unsigned kMax = 32;  // rows or columns of what kMmaShapes has

float small_float(Type type, uint32_t bits) {
  switch (type) {
    case Type::f16:
      return half_to_float(static_cast<uint16_t>(bits));
    case Type::bf16:
      return bf16_to_float(static_cast<uint16_t>(bits));
    default:
      return std::bit_cast<float>(bits & 0xffffe000);  // tf32: what the unit reads
  }
}

struct Fragments {
  const Warp& w;
  const int64_t* places;
  uint32_t word(unsigned index, unsigned lane) const {
    return w.from<uint32_t>(static_cast<int32_t>(places[index]))[lane];
  }
};

// part(type, bits) → element, for each element of A into a[row][column], of B into b[row][column].
template <typename T, typename Part>
void read_fragments(const Fragments& f, const MmaShape& s, unsigned d_count, unsigned per,
                    Part part, T (*a)[kMax], T (*b)[8]) {
  const unsigned width = 32 / per;
  const uint32_t cut = width == 32 ? UINT32_MAX : (1u << width) - 1;
  const unsigned a_count = s.m * s.k / (32 * per);
  const unsigned b_count = s.n * s.k / (32 * per);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned r = 0; r < a_count; ++r) {
      const uint32_t word = f.word(d_count + r, lane);
      for (unsigned p = 0; p < per; ++p) {
        const unsigned row = s.m == 8 ? g : g + 8 * (r & 1);
        const unsigned column = t * per + p + 4 * per * (s.m == 8 ? r : r >> 1);
        a[row][column] = part(s.a, word >> (p * width) & cut);
      }
    }
    for (unsigned r = 0; r < b_count; ++r) {
      const uint32_t word = f.word(d_count + a_count + r, lane);
      for (unsigned p = 0; p < per; ++p) {
        b[t * per + p + 4 * per * r][g] = part(s.b, word >> (p * width) & cut);
      }
    }
  }
}

template <typename T, typename A>
void multiply(const MmaShape& s, const A (*a)[kMax], const A (*b)[8], T (*c)[8]) {
  for (unsigned row = 0; row < s.m; ++row) {
    for (unsigned k = 0; k < s.k; ++k) {
      const T x = static_cast<T>(a[row][k]);
      for (unsigned column = 0; column < 8; ++column) {
        c[row][column] += x * static_cast<T>(b[k][column]);
      }
    }
  }
}

void mma_float(Warp& w, const MmaShape& s, const int64_t* places) {
  const Fragments f{w, places};
  const unsigned per = s.a == Type::tf32 ? 1 : 2;
  const bool half = s.c == Type::f16;
  const unsigned elements = s.m * s.n / 32;
  const unsigned d_count = half ? elements / 2 : elements;
  const unsigned c_at = d_count + s.m * s.k / (32 * per) + s.n * s.k / (32 * per);
  float a[16][kMax], b[kMax][8], c[16][8];
  read_fragments<float>(f, s, d_count, per, small_float, a, b);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      float& to = c[lane / 4 + 8 * (i >> 1)][lane % 4 * 2 + (i & 1)];
      to = half ? half_to_float(static_cast<uint16_t>(f.word(c_at + i / 2, lane) >> (16 * (i & 1))))
                : std::bit_cast<float>(f.word(c_at + i, lane));
    }
  }
  multiply(s, a, b, c);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const float value = c[lane / 4 + 8 * (i >> 1)][lane % 4 * 2 + (i & 1)];
      uint8_t* d = w.to<uint8_t>(static_cast<int32_t>(places[half ? i / 2 : i])) + lane * 4;
      if (half) {
        const uint16_t bits = float_to_half(value);
        std::memcpy(d + 2 * (i & 1), &bits, 2);
      } else {
        std::memcpy(d, &value, 4);
      }
    }
  }
}

int32_t small_integer(Type type, uint32_t bits) {
  return type == Type::s8 ? static_cast<int8_t>(bits) : static_cast<uint8_t>(bits);
}

void mma_integer(Warp& w, const MmaShape& s, const int64_t* places) {
  const Fragments f{w, places};
  const unsigned elements = s.m * s.n / 32;
  const unsigned c_at = elements + s.m * s.k / 128 + s.n * s.k / 128;
  int32_t a[16][kMax], b[kMax][8];
  uint32_t c[16][8];
  read_fragments<int32_t>(f, s, elements, 4, small_integer, a, b);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      c[lane / 4 + 8 * (i >> 1)][lane % 4 * 2 + (i & 1)] = f.word(c_at + i, lane);
    }
  }
  multiply(s, a, b, c);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      w.to<uint32_t>(static_cast<int32_t>(places[i]))[lane] =
          c[lane / 4 + 8 * (i >> 1)][lane % 4 * 2 + (i & 1)];
    }
  }
}

// m8n8k4: d and c have two elements, a and b one each.
void mma_double(Warp& w, const int64_t* places) {
  const auto at = [&](unsigned index) { return static_cast<int32_t>(places[index]); };
  double a[8][4], b[4][8], d[8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    a[lane / 4][lane % 4] = w.from<double>(at(2))[lane];
    b[lane % 4][lane / 4] = w.from<double>(at(3))[lane];
    for (unsigned i = 0; i < 2; ++i)
      d[lane / 4][lane % 4 * 2 + i] = w.from<double>(at(4 + i))[lane];
  }
  for (unsigned row = 0; row < 8; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      for (unsigned k = 0; k < 4; ++k)
        d[row][column] = std::fma(a[row][k], b[k][column], d[row][column]);
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 2; ++i) w.to<double>(at(i))[lane] = d[lane / 4][lane % 4 * 2 + i];
  }
}

}  // namespace

// mode: of kMmaShapes; list: registers of d, a, b and c.
Flow op_mma(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  const MmaShape& s = kMmaShapes[in.mode];
  const int64_t* places = w.kernel->lists.data() + in.list;
  if (s.c == Type::f64)
    mma_double(w, places);
  else if (s.c == Type::s32)
    mma_integer(w, s, places);
  else
    mma_float(w, s, places);
  return Flow::next;
}

// list/count: registers; flag stays an address's; signs: transposed.
Flow op_load_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  const int64_t* places = w.kernel->lists.data() + in.list;
  for (unsigned matrix = 0; matrix < in.count; ++matrix) {
    uint16_t rows[8][8];
    for (unsigned row = 0; row < 8; ++row) {
      const unsigned lane = matrix * 8 + row;
      const uint8_t* memory = lane_memory(w, in, lane, in.space, addresses[lane], 16);
      if (memory == nullptr) return Flow::fault;
      if (w.block->checker) {
        w.block->checker->accesses(w, in, in.space, addresses, 1u << lane, 16, false);
      }
      std::memcpy(rows[row], memory, 16);
    }
    uint32_t* d = w.to<uint32_t>(static_cast<int32_t>(places[matrix]));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      const uint32_t low = in.signs ? rows[t][g] : rows[g][t];
      const uint32_t high = in.signs ? rows[t + 1][g] : rows[g][t + 1];
      d[lane] = high << 16 | low;
    }
  }
  return Flow::next;
}

Flow op_store_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  uint64_t addresses[kLanes];
  lane_addresses(w, in, addresses);
  const int64_t* places = w.kernel->lists.data() + in.list;
  for (unsigned matrix = 0; matrix < in.count; ++matrix) {
    uint16_t rows[8][8];
    const uint32_t* a = w.from<uint32_t>(static_cast<int32_t>(places[matrix]));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      (in.signs ? rows[t][g] : rows[g][t]) = static_cast<uint16_t>(a[lane]);
      (in.signs ? rows[t + 1][g] : rows[g][t + 1]) = static_cast<uint16_t>(a[lane] >> 16);
    }
    for (unsigned row = 0; row < 8; ++row) {
      const unsigned lane = matrix * 8 + row;
      uint8_t* memory = lane_memory(w, in, lane, in.space, addresses[lane], 16);
      if (memory == nullptr) return Flow::fault;
      if (w.block->checker) {
        w.block->checker->accesses(w, in, in.space, addresses, 1u << lane, 16, true);
      }
      std::memcpy(memory, rows[row], 16);
    }
  }
  return Flow::next;
}

Flow op_move_matrix(Warp& w, const Instr& in, uint32_t mask) {
  if (!lanes_together(w, mask, kAllLanes)) return Flow::wait;
  const uint32_t* a = w.from<uint32_t>(in.a);
  uint16_t rows[8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    rows[lane / 4][lane % 4 * 2] = static_cast<uint16_t>(a[lane]);
    rows[lane / 4][lane % 4 * 2 + 1] = static_cast<uint16_t>(a[lane] >> 16);
  }
  uint32_t* d = w.to<uint32_t>(in.d);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned g = lane / 4, t = lane % 4 * 2;
    d[lane] = static_cast<uint32_t>(rows[t + 1][g]) << 16 | rows[t][g];
  }
  return Flow::next;
}

}  // namespace sealane::ptx
