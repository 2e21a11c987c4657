// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// wmma.*: matrices that a warp loads, multiplies and stores as a whole.

#include <charconv>

#include "base/text.h"
#include "ptx/decode/function_decoder.h"

namespace sealane::ptx {
namespace {

struct Shape {
  unsigned m, n, k;
};
constexpr Shape kShapes[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8}, {8, 8, 4}};

// Registers of a lane for a matrix of so many elements; 0: this type has no such matrix.
unsigned registers_of(const Shape& s, Type type, unsigned elements, bool accumulates) {
  const bool wide = s.k == 16;
  switch (type) {
    case Type::f16:
      return !wide ? 0 : accumulates ? 4 : 8;
    case Type::bf16:
      return wide && !accumulates ? elements / 64 : 0;
    case Type::tf32:
      return s.k == 8 && !accumulates ? 4 : 0;
    case Type::s8:
    case Type::u8:
      return wide && !accumulates ? elements / 128 : 0;
    case Type::f32:
      return s.k != 4 && accumulates ? 8 : 0;
    case Type::s32:
      return wide && accumulates ? 8 : 0;
    case Type::f64:
      return s.k == 4 ? elements / 32 : 0;
    default:
      return 0;
  }
}

}  // namespace

// The mNnNkN among the modifiers.
bool FunctionDecoder::take_shape(unsigned& m, unsigned& n, unsigned& k) {
  for (const Shape& s : kShapes) {
    if (!take(concat("m", s.m, "n", s.n, "k", s.k))) continue;
    m = s.m, n = s.n, k = s.k;
    return true;
  }
  return false;
}

// Adds the registers of one matrix to lists. False: another number of them belongs there.
Status FunctionDecoder::matrix_registers(const Operand& group, WarpMatrix& matrix, bool written) {
  Operand one;
  one.kind = Operand::Kind::vector;
  if (group.kind == Operand::Kind::reg) one.parts.push_back(group);
  const Operand& parts = group.kind == Operand::Kind::reg ? one : group;
  if (matrix.registers == 0 || parts.parts.size() != matrix.registers) {
    return refuse("this shape, these types or this number of registers is not supported");
  }
  Instr places = fresh();
  const bool wide = matrix.type == Type::f64;
  if (Status read = list(places, parts, wide ? Type::b64 : Type::b32, written, wide ? 8 : 4); !read)
    return read;
  matrix.places = places.list;
  return {};
}

Status FunctionDecoder::warp_matrix() {
  if (take("mma")) return warp_multiply();
  const bool stores = take("store");
  if (!stores && !take("load")) return refuse("not supported");
  const char which = take("a") ? 'a' : take("b") ? 'b' : take("c") ? 'c' : take("d") ? 'd' : 0;
  take_any({"sync", "aligned"});
  WarpMatrix matrix;
  matrix.by_column = take("col");
  if (!matrix.by_column) take("row");
  Shape s{};
  if (!take_shape(s.m, s.n, s.k) || which == 0 || stores != (which == 'd')) {
    return refuse("this shape is not supported");
  }
  Instr in = fresh();
  take_space(in.space);
  matrix.type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 3); !enough) return enough;
  matrix.rows = which == 'b' ? s.k : s.m;
  matrix.columns = which == 'a' ? s.k : s.n;
  matrix.registers =
      registers_of(s, matrix.type, matrix.rows * matrix.columns, which == 'c' || which == 'd');
  if (Status read = matrix_registers(at_->operands[stores ? 1 : 0], matrix, !stores); !read)
    return read;
  in.b = draft_.constant(matrix.by_column ? matrix.rows : matrix.columns, 4);
  if (at_->operands.size() == 3) {
    if (Status read = set(in.b, source(at_->operands[2], Type::u32)); !read) return read;
  }
  if (Status read = address(at_->operands[stores ? 0 : 1], in); !read) return read;
  in.list = static_cast<uint32_t>(draft_.kernel.matrices.size());
  draft_.kernel.matrices.push_back(matrix);
  in.run = stores ? op_store_warp_matrix : op_load_warp_matrix;
  emit(in);
  return {};
}

// wmma.mma.sync.aligned.alayout.blayout.shape.d.c (of f16) or .d.a.b.c d, a, b, c. Layouts say
// nothing about registers.
Status FunctionDecoder::warp_multiply() {
  take_any({"sync", "aligned", "row", "col"});
  take_any({"row", "col"});
  Shape s{};
  if (!take_shape(s.m, s.n, s.k)) return refuse("this shape is not supported");
  Instr in = fresh();
  take("rn");
  in.signs = take("satfinite");
  Type types[4] = {take_type(), take_type(), take_type(), take_type()};  // d, a, b, c
  if (types[2] == Type::none) {
    types[3] = types[1];
    types[1] = types[2] = Type::f16;
  }
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(4, 4); !enough) return enough;
  const unsigned rows[] = {s.m, s.m, s.k, s.m};
  const unsigned columns[] = {s.n, s.k, s.n, s.n};
  WarpMatrix matrices[4];
  for (size_t i = 0; i < 4; ++i) {
    WarpMatrix& matrix = matrices[i];
    const bool accumulates = i == 0 || i == 3;
    matrix.type = types[i];
    matrix.rows = rows[i];
    matrix.columns = columns[i];
    matrix.registers = registers_of(s, types[i], rows[i] * columns[i], accumulates);
    if (Status read = matrix_registers(at_->operands[i], matrix, i == 0); !read) return read;
  }
  const bool whole = is_integer(types[1]);
  if (whole != (types[0] == Type::s32) || whole != (types[3] == Type::s32)) {
    return refuse("these types are not supported");
  }
  in.list = static_cast<uint32_t>(draft_.kernel.matrices.size());
  draft_.kernel.matrices.insert(draft_.kernel.matrices.end(), matrices, matrices + 4);
  in.run = op_multiply_warp_matrix;
  in.cost = static_cast<uint16_t>(2u * s.m * s.n * s.k / 32);
  emit(in);
  return {};
}

}  // namespace sealane::ptx
