// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic: from mnemonics and modifiers to operations over lanes.

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "ptx/decode/function_decoder.h"

namespace sealane::ptx {
namespace {

Type bits_of_width(unsigned bytes) {
  return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : Type::b16;
}

uint16_t cost_of(Op op, Type type) {
  if (op == Op::mov || op == Op::selp || op == Op::setp || op == Op::cvt) return 0;
  const uint16_t each = op == Op::fma || op == Op::mad_lo || op == Op::mad_wide ? 2 : 1;
  const bool pair = type == Type::f16x2 || type == Type::bf16x2 || type == Type::f32x2;
  return pair ? static_cast<uint16_t>(2 * each) : each;
}

bool half(Type type) { return type >= Type::f16 && type <= Type::bf16x2; }

}  // namespace

Status FunctionDecoder::emit_op(const OpKey& key, Instr in) {
  in.run = lanes().find(key);
  if (in.run == nullptr) return refuse("no such operation");
  if (in.mode == 0 && key.round != Round::none) in.mode = static_cast<uint8_t>(key.round);
  if (half(key.type) && key.op != Op::cvt && key.op != Op::mov && key.op != Op::selp) {
    in.flag = in.flag || key.ftz;
    in.signs = key.saturate;
  }
  in.cost = cost_of(key.op, key.type);
  emit(in);
  return {};
}

// d, a[, b[, c]] all of one type.
Status FunctionDecoder::arithmetic(Op op, unsigned operands) {
  OpKey key{op};
  key.round = take_round();
  key.ftz = take("ftz");
  key.saturate = take("sat");
  key.relu = (op == Op::min || op == Op::max) && take("relu");
  take_any({"approx", "full"});
  key.type = take_type();
  if (key.type == Type::none) return refuse("it has no type");
  const bool clips = key.type == Type::s32 || key.type == Type::s16x2;
  if (key.relu && !clips) return refuse("'.relu' is not supported");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(operands + 1, operands + 1); !enough) return enough;
  Instr in = fresh();
  int32_t* const to[] = {&in.a, &in.b, &in.c};
  for (unsigned i = 0; i < operands; ++i) {
    if (Status read = set(*to[i], source(at_->operands[i + 1], key.type)); !read) return read;
  }
  if (Status read = set(in.d, destination(at_->operands[0], bytes_of(key.type))); !read)
    return read;
  return emit_op(key, in);
}

// add, sub, addc, subc with .cc.
Status FunctionDecoder::add_sub() {
  const bool subtracts = at_->opcode.starts_with("sub");
  const bool carries = at_->opcode.ends_with("c");
  const bool sets = take("cc");
  Op op = subtracts ? Op::sub : Op::add;
  if (carries)
    op = subtracts ? (sets ? Op::subc_cc : Op::subc) : (sets ? Op::addc_cc : Op::addc);
  else if (sets)
    op = subtracts ? Op::sub_cc : Op::add_cc;
  return arithmetic(op, 2);
}

// mul, mad, madc, mul24, mad24, fma: which half, how wide.
Status FunctionDecoder::multiply() {
  const std::string_view name = at_->opcode;
  const bool adds = name != "mul" && name != "mul24";
  const bool lo = take("lo"), hi = take("hi"), wide = take("wide"), cc = take("cc");
  if (wide) {
    const Type type = take_type();
    if (Status taken = all_taken(); !taken) return taken;
    if (Status enough = need(adds ? 4 : 3, adds ? 4 : 3); !enough) return enough;
    if (bytes_of(type) == 0 || bytes_of(type) > 4 || !is_integer(type))
      return refuse("no such operation");
    Instr in = fresh();
    const unsigned bytes = 2 * bytes_of(type);
    if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
    if (Status read = set(in.b, source(at_->operands[2], type)); !read) return read;
    if (adds) {
      if (Status read = set(in.c, source(at_->operands[3], bits_of_width(bytes))); !read)
        return read;
    }
    if (Status read = set(in.d, destination(at_->operands[0], bytes)); !read) return read;
    return emit_op({adds ? Op::mad_wide : Op::mul_wide, type}, in);
  }
  if (name == "mul24") return arithmetic(hi ? Op::mul24_hi : Op::mul24_lo, 2);
  if (name == "mad24") return arithmetic(hi ? Op::mad24_hi : Op::mad24_lo, 3);
  if (name == "mul") return arithmetic(hi ? Op::mul_hi : Op::mul_lo, 2);
  if (name == "madc") {
    if (hi) return arithmetic(cc ? Op::madc_hi_cc : Op::madc_hi, 3);
    return arithmetic(cc ? Op::madc_lo_cc : Op::madc_lo, 3);
  }
  if (name == "fma") return arithmetic(take("relu") ? Op::fma_relu : Op::fma, 3);
  (void)lo;
  if (cc) return arithmetic(hi ? Op::mad_hi_cc : Op::mad_lo_cc, 3);
  return arithmetic(hi ? Op::mad_hi : Op::mad_lo, 3);
}

Status FunctionDecoder::min_max(bool maximum) {
  const bool nan = take("NaN");
  if (take("xorsign")) return refuse("not supported");
  const Op op = maximum ? (nan ? Op::max_nan : Op::max) : (nan ? Op::min_nan : Op::min);
  return at_->operands.size() == 4 ? extreme_of_three(op) : arithmetic(op, 2);
}

// Of two first, then of that and the third; the one that d would overwrite is not left for then.
Status FunctionDecoder::extreme_of_three(Op op) {
  OpKey key{op};
  key.ftz = take("ftz");
  key.type = take_type();
  if (key.type != Type::f32) return refuse("no such operation");
  if (Status taken = all_taken(); !taken) return taken;
  Instr in = fresh();
  int32_t third = 0;
  if (Status read = set(in.a, source(at_->operands[1], key.type)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], key.type)); !read) return read;
  if (Status read = set(third, source(at_->operands[3], key.type)); !read) return read;
  if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
  if (third == in.d) std::swap(third, in.b);
  if (Status emitted = emit_op(key, in); !emitted) return emitted;
  in.a = in.d;
  in.b = third;
  return emit_op(key, in);
}

Status FunctionDecoder::math(Op op) {
  const bool divides = op == Op::div;
  return arithmetic(op, divides ? 2 : 1);
}

// setp.cmp[.bool].type p[|q], a, b[, c] and set.cmp[.bool].dtype.type d, a, b[, c]
Status FunctionDecoder::compare() {
  static constexpr std::pair<std::string_view, Compare> kCompares[] = {
      {"eq", Compare::eq},   {"ne", Compare::ne},   {"lt", Compare::lt},   {"le", Compare::le},
      {"gt", Compare::gt},   {"ge", Compare::ge},   {"lo", Compare::lt},   {"ls", Compare::le},
      {"hi", Compare::gt},   {"hs", Compare::ge},   {"equ", Compare::equ}, {"neu", Compare::neu},
      {"ltu", Compare::ltu}, {"leu", Compare::leu}, {"gtu", Compare::gtu}, {"geu", Compare::geu},
      {"num", Compare::num}, {"nan", Compare::nan}};
  OpKey key{at_->opcode == "setp" ? Op::setp : Op::set};
  bool known = false;
  for (const auto& [name, compare] : kCompares) {
    if (known || !take(name)) continue;
    key.compare = compare;
    known = true;
  }
  if (!known) return refuse("it has no comparison");
  Combine combine = Combine::none;
  if (take("and"))
    combine = Combine::and_;
  else if (take("or"))
    combine = Combine::or_;
  else if (take("xor"))
    combine = Combine::xor_;
  key.ftz = take("ftz");
  Type result = Type::pred;
  if (key.op == Op::set) result = take_type();
  key.from = take_type();
  key.type = result;
  if (key.from == Type::none) return refuse("it has no type");
  if (Status taken = all_taken(); !taken) return taken;
  const bool combined = combine != Combine::none;
  if (Status enough = need(combined ? 4 : 3, combined ? 4 : 3); !enough) return enough;
  Instr in = fresh();
  in.imm = -1;
  in.mode = static_cast<uint8_t>(combine);
  if (Status read = set(in.a, source(at_->operands[1], key.from)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], key.from)); !read) return read;
  if (combined) {
    const Operand& c = at_->operands[3];
    if (c.negated) in.mode |= 4;
    if (Status read = set(in.c, predicate(c)); !read) return read;
  }
  const Operand& d = at_->operands[0];
  if (key.op == Op::set) {
    const bool floating = is_float(result);
    const bool wide = bytes_of(result) == 4;
    const bool fits = half(key.from) ? (wide || bytes_of(result) == 2) : wide;
    if (!fits || (bytes_of(key.from) == 4 && half(key.from) && !wide))
      return refuse("no such operation");
    in.flag = floating;
    in.d_bytes = static_cast<uint8_t>(bytes_of(result));
    if (Status read = set(in.d, destination(d, bytes_of(result))); !read) return read;
    return emit_op(key, in);
  }
  const bool pair = d.kind == Operand::Kind::pair;
  if (Status read = set(in.d, predicate(pair ? d.parts[0] : d)); !read) return read;
  if (in.d < 0) return refuse("the destination is a constant");
  if (pair) {
    int32_t second = 0;
    if (Status read = set(second, predicate(d.parts[1])); !read) return read;
    in.imm = second;
  }
  key.type = Type::pred;
  return emit_op(key, in);
}

Status FunctionDecoder::select() {
  OpKey key{at_->opcode == "selp" ? Op::selp : Op::slct};
  key.ftz = take("ftz");
  key.type = take_type();
  if (key.op == Op::slct) key.from = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(4, 4); !enough) return enough;
  Instr in = fresh();
  if (key.type == Type::pred || bytes_of(key.type) < 2) return refuse("no such operation");
  if (Status read = set(in.a, source(at_->operands[1], key.type)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], key.type)); !read) return read;
  const Operand& c = at_->operands[3];
  in.flag = c.negated;
  if (key.op == Op::selp) {
    if (Status read = set(in.c, predicate(c)); !read) return read;
  } else if (Status read = set(in.c, source(c, key.from)); !read) {
    return read;
  }
  if (Status read = set(in.d, destination(at_->operands[0], bytes_of(key.type))); !read)
    return read;
  return emit_op(key, in);
}

Status FunctionDecoder::convert() {
  OpKey key{Op::cvt};
  key.round = take_round();
  key.ftz = take("ftz");
  key.saturate = take("sat") || take("satfinite");
  key.relu = take("relu");
  key.type = take_type();
  key.from = take_type();
  if (key.type == Type::none || key.from == Type::none) return refuse("it has no types");
  if (Status taken = all_taken(); !taken) return taken;
  const bool pair = at_->operands.size() == 3;
  if (Status enough = need(2, 3); !enough) return enough;
  if (pair && key.from != Type::f32) return refuse("no such operation");
  if (pair) key.op = Op::cvt_pack;
  Instr in = fresh();
  in.flag = key.ftz;
  const bool fp8 = key.type == Type::e4m3x2 || key.type == Type::e5m2x2;
  in.imm = (key.saturate && !fp8 ? 1 : 0) | (key.relu ? 2 : 0);
  in.mode = static_cast<uint8_t>(key.round);
  const Operand& a = at_->operands[1];
  const unsigned have = width(a);
  if (have > 0) {
    if (have < bytes_of(key.from)) return refuse("a register has another width");
    in.a_bytes = static_cast<uint8_t>(have);
    if (Status read = set(in.a, place(a.index, have)); !read) return read;
  } else {
    const unsigned bytes = std::max(2u, bytes_of(key.from));
    in.a_bytes = static_cast<uint8_t>(bytes);
    if (Status read = set(in.a, source(a, bytes == bytes_of(key.from) ? key.from : Type::b16));
        !read) {
      return read;
    }
  }
  if (pair || bytes_of(key.from) > 1) {
    if (pair && have != 4 && have != 0) return refuse("a register has another width");
  }
  if (pair) {
    if (Status read = set(in.b, source(at_->operands[2], key.from)); !read) return read;
  }
  const Operand& d = at_->operands[0];
  const unsigned room = d.kind == Operand::Kind::sink ? 8 : width(d);
  if (room < bytes_of(key.type) || room == 0) return refuse("a register has another width");
  const bool packed = pair || key.type == Type::f16x2 || fp8 || key.type == Type::tf32;
  if (packed && (room != bytes_of(key.type) || (have != 0 && have != bytes_of(key.from)))) {
    return refuse("a register has another width");
  }
  in.d_bytes = static_cast<uint8_t>(room);
  if (Status read = set(in.d, destination(d, room)); !read) return read;
  return emit_op(key, in);
}

// and, or, xor, not of bits and of predicates.
Status FunctionDecoder::logic(Op op, PredicateOp predicate_op) {
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  const size_t operands = op == Op::bit_not || op == Op::cnot ? 2 : 3;
  if (Status enough = need(operands, operands); !enough) return enough;
  Instr in = fresh();
  if (type == Type::pred) {
    if (op == Op::cnot) return refuse("no such operation");
    if (Status read = set(in.d, predicate(at_->operands[0])); !read) return read;
    if (in.d < 0) return refuse("the destination is a constant");
    if (Status read = set(in.a, predicate(at_->operands[1])); !read) return read;
    in.b = in.a;
    if (operands == 3) {
      if (Status read = set(in.b, predicate(at_->operands[2])); !read) return read;
    }
    in.run = op_predicate;
    in.mode = static_cast<uint8_t>(predicate_op);
    emit(in);
    return {};
  }
  if (!is_integer(type) || bytes_of(type) < 2) return refuse("no such operation");
  if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  if (operands == 3) {
    if (Status read = set(in.b, source(at_->operands[2], type)); !read) return read;
  }
  if (Status read = set(in.d, destination(at_->operands[0], bytes_of(type))); !read) return read;
  return emit_op({op, bits_of_width(bytes_of(type))}, in);
}

Status FunctionDecoder::shift(Op op) {
  Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(3, 3); !enough) return enough;
  if (!is_integer(type)) return refuse("no such operation");
  Instr in = fresh();
  if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], Type::u32)); !read) return read;
  if (Status read = set(in.d, destination(at_->operands[0], bytes_of(type))); !read) return read;
  if (op == Op::shl || !is_signed(type)) type = bits_of_width(bytes_of(type));
  return emit_op({op, type}, in);
}

// popc, clz, brev, bfind, bfe, bfi, lop3, shf, bmsk, szext: operands of mixed widths.
Status FunctionDecoder::bits() {
  const std::string_view name = at_->opcode;
  const bool shift_amount = take("shiftamt"), wrap = take("wrap"), clamp = take("clamp");
  const bool left = take("l"), right = take("r");
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  (void)clamp;
  (void)right;
  Op op = Op::popc;
  Type of[4] = {type, type, type, type};  // a, b, c, and d first
  size_t count = 2;
  unsigned d_bytes = bytes_of(type);
  if (name == "popc" || name == "clz")
    op = name == "popc" ? Op::popc : Op::clz, d_bytes = 4;
  else if (name == "brev")
    op = Op::brev;
  else if (name == "bfind")
    op = shift_amount ? Op::bfind_shift : Op::bfind, d_bytes = 4;
  else if (name == "bfe")
    op = Op::bfe, count = 4, of[1] = of[2] = Type::u32;
  else if (name == "bfi")
    op = Op::bfi, count = 5, of[2] = of[3] = Type::u32;
  else if (name == "lop3")
    op = Op::lop3, count = 5;
  else if (name == "shf") {
    count = 4;
    op = left ? (wrap ? Op::shf_l_wrap : Op::shf_l_clamp)
              : (wrap ? Op::shf_r_wrap : Op::shf_r_clamp);
  } else if (name == "bmsk")
    op = wrap ? Op::bmsk_wrap : Op::bmsk_clamp, count = 3;
  else
    op = wrap ? Op::szext_wrap : Op::szext_clamp, count = 3;
  if (Status enough = need(count, count); !enough) return enough;
  if (!is_integer(type) || bytes_of(type) < 4) return refuse("no such operation");
  Instr in = fresh();
  int32_t fourth = 0;
  int32_t* const to[] = {&in.a, &in.b, &in.c, &fourth};
  const size_t registers = op == Op::lop3 ? 3 : count - 1;
  for (size_t i = 0; i < registers; ++i) {
    if (Status read = set(*to[i], source(at_->operands[i + 1], of[i])); !read) return read;
  }
  if (op == Op::bfi) in.imm = fourth;
  if (op == Op::lop3) {
    if (at_->operands[4].kind != Operand::Kind::integer) return refuse("its table is a number");
    in.imm = static_cast<int64_t>(at_->operands[4].bits & 0xff);
  }
  if (Status read = set(in.d, destination(at_->operands[0], d_bytes)); !read) return read;
  return emit_op({op, type}, in);
}

Status FunctionDecoder::permute() {
  static constexpr std::pair<std::string_view, Op> kModes[] = {
      {"f4e", Op::prmt_f4e}, {"b4e", Op::prmt_b4e}, {"rc8", Op::prmt_rc8},
      {"ecl", Op::prmt_ecl}, {"ecr", Op::prmt_ecr}, {"rc16", Op::prmt_rc16}};
  Op op = Op::prmt;
  for (const auto& [name, mode] : kModes) {
    if (take(name)) op = mode;
  }
  return arithmetic(op, 3);
}

// dp4a.atype.btype, dp2a.mode.atype.btype
Status FunctionDecoder::dot() {
  OpKey key{Op::dp4a};
  if (at_->opcode == "dp2a") key.op = take("hi") ? Op::dp2a_hi : Op::dp2a_lo;
  take("lo");
  key.type = take_type();
  key.from = take_type();
  const auto word = [](Type t) { return t == Type::s32 || t == Type::u32; };
  if (!word(key.type) || !word(key.from)) return refuse("no such operation");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(4, 4); !enough) return enough;
  Instr in = fresh();
  int32_t* const to[] = {&in.a, &in.b, &in.c};
  for (size_t i = 0; i < 3; ++i) {
    if (Status read = set(*to[i], source(at_->operands[i + 1], Type::b32)); !read) return read;
  }
  if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
  return emit_op(key, in);
}

// vabsdiff4.dtype.atype.btype[.add] d, a, b, c: of all four bytes.
Status FunctionDecoder::bytes_apart() {
  OpKey key{take("add") ? Op::vabsdiff4_add : Op::vabsdiff4};
  const Type result = take_type();
  key.type = take_type();
  const Type second = take_type();
  const auto word = [](Type t) { return t == Type::s32 || t == Type::u32; };
  if (!word(result) || !word(key.type) || second != key.type) return refuse("no such operation");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(4, 4); !enough) return enough;
  Instr in = fresh();
  int32_t* const to[] = {&in.a, &in.b, &in.c};
  for (size_t i = 0; i < 3; ++i) {
    if (Status read = set(*to[i], source(at_->operands[i + 1], Type::b32)); !read) return read;
  }
  if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
  return emit_op(key, in);
}

Status FunctionDecoder::test() {
  static constexpr std::string_view kKinds[] = {"finite",     "infinite", "number",
                                                "notanumber", "normal",   "subnormal"};
  Instr in = fresh();
  for (uint8_t i = 0; i < std::size(kKinds); ++i) {
    if (take(kKinds[i])) in.mode = i;
  }
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  if (Status read = set(in.d, predicate(at_->operands[0])); !read) return read;
  if (in.d < 0) return refuse("the destination is a constant");
  return emit_op({Op::testp, type}, in);
}

}  // namespace sealane::ptx
