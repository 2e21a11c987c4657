// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands: registers, constants, addresses, modifiers.

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "ptx/decode/function_decoder.h"
#include "ptx/exec/builtins.h"
#include "ptx/ops/half.h"
#include "ptx/text/declaration.h"

namespace sealane::ptx {
namespace {

constexpr uint32_t kRegisterBytesMax = 64 << 20;
constexpr uint64_t kFrameMax = 1 << 24;

// An immediate as the bits its type has.
uint64_t immediate_bits(const Operand& operand, Type type) {
  using Kind = Operand::Kind;
  const bool floating = type == Type::f32 || type == Type::f64;
  if (operand.kind == Kind::integer && !floating) return operand.bits;
  if (operand.kind == Kind::single && type != Type::f64) return operand.bits;
  if (operand.kind == Kind::real && type != Type::f32) return operand.bits;
  double value = static_cast<double>(static_cast<int64_t>(operand.bits));
  if (operand.kind == Kind::single)
    value = std::bit_cast<float>(static_cast<uint32_t>(operand.bits));
  if (operand.kind == Kind::real) value = std::bit_cast<double>(operand.bits);
  if (type == Type::f32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<uint64_t>(value);
}

struct SpecialName {
  std::string_view name;
  char component;
  Special special;
};
constexpr SpecialName kSpecials[] = {
    {"%tid", 'x', Special::tid_x},
    {"%tid", 'y', Special::tid_y},
    {"%tid", 'z', Special::tid_z},
    {"%ntid", 'x', Special::ntid_x},
    {"%ntid", 'y', Special::ntid_y},
    {"%ntid", 'z', Special::ntid_z},
    {"%ctaid", 'x', Special::ctaid_x},
    {"%ctaid", 'y', Special::ctaid_y},
    {"%ctaid", 'z', Special::ctaid_z},
    {"%nctaid", 'x', Special::nctaid_x},
    {"%nctaid", 'y', Special::nctaid_y},
    {"%nctaid", 'z', Special::nctaid_z},
    {"%laneid", 0, Special::laneid},
    {"%warpid", 0, Special::warpid},
    {"%nwarpid", 0, Special::nwarpid},
    {"%smid", 0, Special::smid},
    {"%nsmid", 0, Special::nsmid},
    {"%gridid", 0, Special::gridid},
    {"%lanemask_eq", 0, Special::lanemask_eq},
    {"%lanemask_le", 0, Special::lanemask_le},
    {"%lanemask_lt", 0, Special::lanemask_lt},
    {"%lanemask_ge", 0, Special::lanemask_ge},
    {"%lanemask_gt", 0, Special::lanemask_gt},
    {"%clock", 0, Special::clock},
    {"%clock_hi", 0, Special::clock_hi},
    {"%clock64", 0, Special::clock64},
    {"%globaltimer", 0, Special::globaltimer},
    {"%globaltimer_lo", 0, Special::globaltimer_lo},
    {"%globaltimer_hi", 0, Special::globaltimer_hi},
    {"%dynamic_smem_size", 0, Special::dynamic_smem_size},
    {"%total_smem_size", 0, Special::total_smem_size},
    {"%envreg1", 0, Special::envreg1},
    {"%envreg2", 0, Special::envreg2},
    {"%aggr_smem_size", 0, Special::total_smem_size},
    // Every block is a cluster of its own.
    {"%clusterid", 'x', Special::ctaid_x},
    {"%clusterid", 'y', Special::ctaid_y},
    {"%clusterid", 'z', Special::ctaid_z},
    {"%nclusterid", 'x', Special::nctaid_x},
    {"%nclusterid", 'y', Special::nctaid_y},
    {"%nclusterid", 'z', Special::nctaid_z},
    {"%cluster_ctaid", 'x', Special::zero},
    {"%cluster_ctaid", 'y', Special::zero},
    {"%cluster_ctaid", 'z', Special::zero},
    {"%cluster_nctaid", 'x', Special::one},
    {"%cluster_nctaid", 'y', Special::one},
    {"%cluster_nctaid", 'z', Special::one},
    {"%cluster_ctarank", 0, Special::zero},
    {"%cluster_nctarank", 0, Special::one},
};

}  // namespace

FunctionDecoder::FunctionDecoder(KernelDraft& draft, size_t part, Function& out)
    : draft_(draft),
      part_(part),
      text_(*draft.parts[part]->text),
      body_(draft.parts[part]->body),
      out_(out),
      register_at_(body_.registers.size(), -1),
      stack_at_(body_.variables.size(), -1) {}

Error FunctionDecoder::refuse(std::string_view why) const {
  std::string name(at_->opcode);
  for (const std::string_view modifier : at_->modifiers) name += concat(".", modifier);
  return usage_error(concat("line ", at_->line, ": ", printable(name, 120), ": ", why));
}

bool FunctionDecoder::take(std::string_view modifier) {
  for (size_t i = 0; i < at_->modifiers.size(); ++i) {
    if (!taken_[i] && at_->modifiers[i] == modifier) {
      taken_[i] = true;
      return true;
    }
  }
  return false;
}

void FunctionDecoder::take_any(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) take(modifier);
}

Type FunctionDecoder::take_type() {
  for (size_t i = 0; i < at_->modifiers.size(); ++i) {
    const Type type = taken_[i] ? Type::none : type_named(at_->modifiers[i]);
    if (type == Type::none) continue;
    taken_[i] = true;
    return type;
  }
  return Type::none;
}

bool FunctionDecoder::take_space(Space& space) {
  for (size_t i = 0; i < at_->modifiers.size(); ++i) {
    if (taken_[i] || !space_named(at_->modifiers[i], space)) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

Round FunctionDecoder::take_round() {
  static constexpr std::pair<std::string_view, Round> kRounds[] = {
      {"rn", Round::rn},   {"rz", Round::rz},   {"rm", Round::rm},
      {"rp", Round::rp},   {"rni", Round::rni}, {"rzi", Round::rzi},
      {"rmi", Round::rmi}, {"rpi", Round::rpi}, {"rna", Round::rna}};
  for (const auto& [name, round] : kRounds) {
    if (take(name)) return round;
  }
  return Round::none;
}

Status FunctionDecoder::all_taken() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i])
      return refuse(concat("'.", printable(at_->modifiers[i], 40), "' is not supported"));
  }
  return {};
}

Instr FunctionDecoder::fresh() const {
  Instr in;
  in.line = at_->line;
  return in;
}

void FunctionDecoder::emit(Instr in) {
  in.line = at_->line;
  std::string name(at_->opcode);
  for (const std::string_view modifier : at_->modifiers) name += concat(".", modifier);
  const auto [known, added] =
      draft_.name_at.emplace(std::move(name), static_cast<uint32_t>(draft_.kernel.names.size()));
  if (added) draft_.kernel.names.push_back(known->first);
  in.name = known->second;
  if (at_->guard >= 0) {
    auto guard = place(static_cast<uint32_t>(at_->guard), 4);
    if (guard) in.guard = *guard;
    in.guard_not = at_->guard_not;
  }
  out_.code.push_back(in);
}

int32_t FunctionDecoder::scratch(unsigned bytes) {
  const auto at = static_cast<int32_t>(out_.register_bytes);
  out_.register_bytes += bytes * kLanes;
  return at;
}

// Where a register's lanes are. Not exact: a wider register will do.
Result<int32_t> FunctionDecoder::place(uint32_t reg, unsigned bytes, bool exact) {
  const Type type = body_.registers[reg];
  const unsigned have = type == Type::pred ? 4 : std::max(2u, bytes_of(type));
  if (have < bytes || (exact && have != bytes)) return refuse("a register has another width");
  if (register_at_[reg] < 0) {
    if (out_.register_bytes > kRegisterBytesMax) return refuse("too many registers");
    // A predicate is one word, with room for alignment.
    register_at_[reg] = scratch(type == Type::pred ? 2 : have);
  }
  return register_at_[reg];
}

unsigned FunctionDecoder::width(const Operand& operand) const {
  if (operand.kind != Operand::Kind::reg) return 0;
  const Type type = body_.registers[operand.index];
  return type == Type::pred ? 0 : std::max(2u, bytes_of(type));
}

Status FunctionDecoder::set(int32_t& to, Result<int32_t> from) {
  if (!from) return from.error();
  to = *from;
  return {};
}

uint32_t FunctionDecoder::stack_place(uint32_t index) {
  if (stack_at_[index] < 0) {
    const Variable& variable = body_.variables[index];
    const uint64_t align = std::min<uint64_t>(variable.align, 16);
    const uint64_t at = (out_.stack_bytes + align - 1) & ~(align - 1);
    const uint64_t end = std::min(at + variable.bytes, kFrameMax * 2);
    stack_at_[index] = static_cast<int64_t>(at);
    out_.stack_bytes = static_cast<uint32_t>((end + 15) & ~uint64_t{15});
  }
  return static_cast<uint32_t>(stack_at_[index]);
}

// The address a name stands for, and the space it is in.
Result<uint64_t> FunctionDecoder::symbol(const Operand& operand, Space& space) {
  if (operand.kind == Operand::Kind::variable) {
    const Variable& variable = body_.variables[operand.index];
    space = variable.space;
    if (space == Space::shared) return uint64_t{draft_.shared_of_function[{part_, operand.index}]};
    if (space == Space::param && text_.entry && operand.index < text_.parameters.size()) {
      return uint64_t{draft_.kernel.parameters[operand.index].offset};
    }
    space = Space::local;
    return uint64_t{stack_place(operand.index)};
  }
  const Variable* variable = draft_.module->variable(operand.name);
  if (variable != nullptr) {
    space = variable->space;
    if (variable->opaque) return refuse("textures and surfaces are not supported");
    const auto offset = static_cast<uint64_t>(operand.offset);
    if (space == Space::shared) return draft_.shared_named[std::string(operand.name)] + offset;
    const auto address = draft_.addresses(operand.name);
    if (!address) return refuse(concat("unresolved variable ", printable(operand.name, 120)));
    return *address + offset;
  }
  space = Space::generic;
  const uint64_t function = function_address(*draft_.module, operand.name);
  if (function == 0) return refuse(concat("unresolved symbol ", printable(operand.name, 120)));
  return function;
}

Status FunctionDecoder::special(const Operand& operand, int32_t d, unsigned bytes) {
  if (bytes != 2 && bytes != 4 && bytes != 8) return refuse("a register has another width");
  if (operand.name == "WARP_SZ") {
    Instr in = fresh();
    const OpKey key{Op::mov, bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : Type::b16};
    in.d = d;
    in.a = draft_.constant(kLanes, bytes);
    return emit_op(key, in);
  }
  for (const SpecialName& one : kSpecials) {
    if (one.name != operand.name || one.component != operand.component) continue;
    Instr in = fresh();
    in.run = op_special;
    in.mode = static_cast<uint8_t>(one.special);
    in.d = d;
    in.d_bytes = static_cast<uint8_t>(bytes);
    emit(in);
    return {};
  }
  if (operand.name.starts_with("%envreg")) {
    Instr in = fresh();
    in.run = op_special;
    in.mode = static_cast<uint8_t>(Special::zero);
    in.d = d;
    in.d_bytes = static_cast<uint8_t>(bytes);
    emit(in);
    return {};
  }
  return refuse(concat("unknown register ", printable(operand.name, 60)));
}

Result<int32_t> FunctionDecoder::source(const Operand& operand, Type type) {
  const unsigned bytes = std::max(2u, bytes_of(type));
  switch (operand.kind) {
    case Operand::Kind::reg:
      if (operand.negated) return refuse("a negated operand");
      if (type == Type::pred) return predicate(operand);
      return place(operand.index, bytes);
    case Operand::Kind::integer:
    case Operand::Kind::real:
    case Operand::Kind::single:
      return draft_.constant(immediate_bits(operand, type), bytes);
    case Operand::Kind::special: {
      const int32_t d = scratch(bytes);
      if (bytes < 4) return refuse("a register has another width");
      if (Status read = special(operand, d, bytes); !read) return read.error();
      return d;
    }
    case Operand::Kind::variable:
    case Operand::Kind::name: {
      const int32_t d = scratch(bytes);
      if (bytes < 4) return refuse("a register has another width");
      if (Status read = move_address(operand, d, bytes); !read) return read.error();
      return d;
    }
    default:
      return refuse("an operand of this kind");
  }
}

Result<int32_t> FunctionDecoder::destination(const Operand& operand, unsigned bytes) {
  if (operand.kind == Operand::Kind::sink) return scratch(std::max(bytes, 4u));
  if (operand.kind != Operand::Kind::reg) return refuse("the destination is no register");
  return place(operand.index, std::max(2u, bytes));
}

Result<int32_t> FunctionDecoder::predicate(const Operand& operand) {
  if (operand.kind == Operand::Kind::sink) return scratch(4);
  if (operand.kind == Operand::Kind::integer) {
    return draft_.constant(operand.bits != 0 ? UINT32_MAX : 0, 4);
  }
  if (operand.kind != Operand::Kind::reg || body_.registers[operand.index] != Type::pred) {
    return refuse("a predicate belongs here");
  }
  return place(operand.index, 4);
}

// Base and offset of a memory operand; in.space must be known. Names become constants.
Status FunctionDecoder::address(const Operand& operand, Instr& in) {
  if (operand.kind != Operand::Kind::address || operand.parts.size() != 1) {
    return refuse("an address belongs here");
  }
  const Operand& base = operand.parts[0];
  in.imm = operand.offset;
  if (base.kind == Operand::Kind::reg) {
    const unsigned bytes = width(base);
    if (bytes != 4 && bytes != 8) return refuse("an address has 32 or 64 bits");
    in.a_bytes = static_cast<uint8_t>(bytes);
    return set(in.a, place(base.index, bytes));
  }
  in.a_bytes = 8;
  if (base.kind == Operand::Kind::integer) {
    in.a = draft_.constant(base.bits, 8);
    return {};
  }
  if (base.kind != Operand::Kind::variable && base.kind != Operand::Kind::name) {
    return refuse("an address belongs here");
  }
  Space space;
  auto at = symbol(base, space);
  if (!at) return at.error();
  if (in.space == Space::generic) {
    if (space == Space::shared) *at += kSharedWindow;
    if (space == Space::local) return refuse("a generic access to a local name");
    if (space == Space::param) *at += kParamWindow;
  } else if (space == Space::local) {
    in.space = Space::local;  // a function's parameters are on its stack
    in.flag = true;
  } else if ((in.space == Space::shared) != (space == Space::shared)) {
    return refuse("the name is in another space");
  }
  in.a = draft_.constant(*at, 8);
  return {};
}

// Several registers, as a vector has them: in.list, in.count.
Status FunctionDecoder::list(Instr& in, const Operand& operand, Type type, bool written,
                             unsigned bytes) {
  std::vector<int64_t> places;
  const std::vector<Operand>& parts = operand.parts;
  for (const Operand& part : parts) {
    const auto at = written ? destination(part, bytes) : source(part, type);
    if (!at) return at.error();
    places.push_back(*at);
  }
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  in.count = static_cast<uint16_t>(places.size());
  draft_.kernel.lists.insert(draft_.kernel.lists.end(), places.begin(), places.end());
  return {};
}

Status FunctionDecoder::need(size_t at_least, size_t at_most) {
  const size_t have = at_->operands.size();
  if (have < at_least || have > at_most) return refuse(concat("has ", have, " operands"));
  return {};
}

}  // namespace sealane::ptx
