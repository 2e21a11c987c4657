// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One function: its statements in order, control flow, calls and moves.

#include "ptx/decode/function_decoder.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "ptx/exec/builtins.h"

namespace sealane::ptx {

Status FunctionDecoder::plain(Handler handler) {
  Instr in = fresh();
  in.run = handler;
  emit(in);
  return {};
}

// mov of registers, constants, addresses, vectors and predicates.
Status FunctionDecoder::move() {
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  const Operand& d = at_->operands[0];
  const Operand& a = at_->operands[1];
  Instr in = fresh();
  if (type == Type::pred) {
    if (Status read = set(in.d, predicate(d)); !read) return read;
    if (Status read = set(in.a, predicate(a)); !read) return read;
    if (in.d < 0) return refuse("the destination is a constant");
    in.b = in.a;
    in.run = op_predicate;
    in.mode = static_cast<uint8_t>(a.negated ? PredicateOp::not_ : PredicateOp::move);
    emit(in);
    return {};
  }
  const unsigned bytes = bytes_of(type);
  if (bytes < 2 || bytes > 8) return refuse("no such operation");
  const bool packs = a.kind == Operand::Kind::vector;
  if (packs || d.kind == Operand::Kind::vector) {
    const Operand& vector = packs ? a : d;
    const size_t count = vector.parts.size();
    if (count != 2 && count != 4) return refuse("a vector has 2 or 4 parts");
    const auto part = static_cast<unsigned>(bytes / count);
    if (part < 2) return refuse("no such operation");
    in.a_bytes = static_cast<uint8_t>(part);
    in.d_bytes = static_cast<uint8_t>(bytes);
    const Type as = part == 4 ? Type::b32 : Type::b16;
    if (Status read = list(in, vector, as, !packs, part); !read) return read;
    in.run = packs ? op_pack : op_unpack;
    if (packs) {
      if (Status read = set(in.d, destination(d, bytes)); !read) return read;
    } else if (Status read = set(in.a, source(a, type)); !read) {
      return read;
    }
    emit(in);
    return {};
  }
  if (Status read = set(in.d, destination(d, bytes)); !read) return read;
  if (a.kind == Operand::Kind::special) return special(a, in.d, bytes);
  if (a.kind == Operand::Kind::variable || a.kind == Operand::Kind::name) {
    return move_address(a, in.d, bytes);
  }
  if (Status read = set(in.a, source(a, type)); !read) return read;
  return emit_op({Op::mov, bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : Type::b16}, in);
}

Status FunctionDecoder::move_address(const Operand& from, int32_t d, unsigned bytes) {
  if (bytes < 4) return refuse("an address has 32 or 64 bits");
  Instr in = fresh();
  Space space;
  auto at = symbol(from, space);
  if (!at) return at.error();
  in.d = d;
  in.d_bytes = static_cast<uint8_t>(bytes);
  if (space == Space::local) {
    in.run = op_local_address;
    in.imm = static_cast<int64_t>(*at);
    emit(in);
    return {};
  }
  in.a = draft_.constant(*at, bytes);
  return emit_op({Op::mov, bytes == 8 ? Type::b64 : Type::b32}, in);
}

Status FunctionDecoder::branch() {
  take("uni");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(1, 1); !enough) return enough;
  const Operand& target = at_->operands[0];
  const int64_t statement = body_.label(target.name, target.scope);
  if (target.kind != Operand::Kind::name || statement < 0) {
    return refuse(concat("no label ", printable(target.name, 60)));
  }
  Instr in = fresh();
  in.run = op_branch;
  in.imm = statement;  // patched when all are decoded
  emit(in);
  return {};
}

Status FunctionDecoder::branch_table() {
  if (!take("idx")) return refuse("not supported");
  take("uni");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  const auto* targets = body_.table(at_->operands[1].name);
  if (targets == nullptr || targets->size() > 65535) return refuse("no table of that name");
  Instr in = fresh();
  if (Status read = set(in.a, source(at_->operands[0], Type::u32)); !read) return read;
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  in.count = static_cast<uint16_t>(targets->size());
  for (const Operand& target : *targets) {
    const int64_t statement = body_.label(target.name, target.scope);
    if (statement < 0) return refuse(concat("no label ", printable(target.name, 60)));
    draft_.kernel.lists.push_back(statement);
  }
  in.run = op_branch_table;
  emit(in);
  return {};
}

// call[.uni] [(returns),] function|address[, (arguments)][, prototype]
Status FunctionDecoder::call() {
  take("uni");
  if (Status taken = all_taken(); !taken) return taken;
  const std::vector<Operand>& operands = at_->operands;
  size_t next = 0;
  static const Operand& kNothing = *new Operand;  // never destroyed, as below
  const Operand* returns = &kNothing;
  const Operand* arguments = &kNothing;
  if (next < operands.size() && operands[next].kind == Operand::Kind::group)
    returns = &operands[next++];
  if (next >= operands.size()) return refuse("calls nothing");
  const Operand& callee = operands[next++];
  if (next < operands.size() && operands[next].kind == Operand::Kind::group)
    arguments = &operands[next++];
  std::vector<int64_t> places;
  std::vector<uint64_t> sizes;
  for (const Operand* group : {returns, arguments}) {
    for (const Operand& one : group->parts) {
      const bool param = one.kind == Operand::Kind::variable &&
                         body_.variables[one.index].space == Space::param &&
                         one.index >= (text_.entry ? text_.parameters.size() : 0);
      if (!param) return refuse("arguments of calls are .param variables");
      places.push_back(stack_place(one.index));
      sizes.push_back(body_.variables[one.index].bytes);
    }
  }
  Instr in = fresh();
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  in.d = static_cast<int32_t>(returns->parts.size());
  in.a = static_cast<int32_t>(arguments->parts.size());
  draft_.kernel.lists.insert(draft_.kernel.lists.end(), places.begin(), places.end());
  if (callee.kind == Operand::Kind::reg) {
    // Whoever is called copies as many bytes as it wants: leave room behind the last of ours.
    out_.stack_bytes += 256;
    in.run = op_call_address;
    if (Status read = set(in.b, source(callee, Type::u64)); !read) return read;
    emit(in);
    return {};
  }
  const FunctionText* function = draft_.module->function(callee.name);
  if (callee.kind != Operand::Kind::name || function == nullptr) {
    return refuse(concat("no function ", printable(callee.name, 120)));
  }
  const bool fits = function->returns.size() == returns->parts.size() &&
                    function->parameters.size() == arguments->parts.size();
  if (!fits) return refuse("another number of arguments belongs here");
  size_t index = 0;
  for (const auto* declared : {&function->returns, &function->parameters}) {
    for (const Variable& one : *declared) {
      if (one.bytes != sizes[index++]) return refuse("an argument has another size");
    }
  }
  if (const Builtin builtin = builtin_named(callee.name);
      !function->defined && builtin != Builtin::none) {
    static constexpr size_t kArguments[] = {0, 2, 5, 1, 1};
    if (arguments->parts.size() != kArguments[static_cast<size_t>(builtin)])
      return refuse("another number of arguments belongs here");
    in.run = op_call_builtin;
    in.mode = static_cast<uint8_t>(builtin);
    out_.stack_bytes += 64;
    emit(in);
    return {};
  }
  const auto part = draft_.part_named.find(function->name);
  if (part == draft_.part_named.end()) {
    return refuse(concat("function ", printable(callee.name, 120), " is not defined"));
  }
  in.run = op_call;
  in.imm = static_cast<int64_t>(part->second);
  emit(in);
  return {};
}

Status FunctionDecoder::statement() {
  using Decoder = Status (*)(FunctionDecoder&);
  using D = FunctionDecoder;
  // Never destroyed: programs launch from their exit handlers, too.
  static const auto& kDecoders = *new std::unordered_map<std::string_view, Decoder>{
      {"add", [](D& d) { return d.add_sub(); }},
      {"sub", [](D& d) { return d.add_sub(); }},
      {"addc", [](D& d) { return d.add_sub(); }},
      {"subc", [](D& d) { return d.add_sub(); }},
      {"mul", [](D& d) { return d.multiply(); }},
      {"mad", [](D& d) { return d.multiply(); }},
      {"madc", [](D& d) { return d.multiply(); }},
      {"mul24", [](D& d) { return d.multiply(); }},
      {"mad24", [](D& d) { return d.multiply(); }},
      {"fma", [](D& d) { return d.multiply(); }},
      {"div", [](D& d) { return d.math(Op::div); }},
      {"rem", [](D& d) { return d.arithmetic(Op::rem, 2); }},
      {"abs", [](D& d) { return d.math(Op::abs); }},
      {"neg", [](D& d) { return d.math(Op::neg); }},
      {"copysign", [](D& d) { return d.arithmetic(Op::copysign, 2); }},
      {"min", [](D& d) { return d.min_max(false); }},
      {"max", [](D& d) { return d.min_max(true); }},
      {"sad", [](D& d) { return d.arithmetic(Op::sad, 3); }},
      {"rcp", [](D& d) { return d.math(Op::rcp); }},
      {"sqrt", [](D& d) { return d.math(Op::sqrt); }},
      {"rsqrt", [](D& d) { return d.math(Op::rsqrt); }},
      {"sin", [](D& d) { return d.math(Op::sin); }},
      {"cos", [](D& d) { return d.math(Op::cos); }},
      {"lg2", [](D& d) { return d.math(Op::lg2); }},
      {"ex2", [](D& d) { return d.math(Op::ex2); }},
      {"tanh", [](D& d) { return d.math(Op::tanh); }},
      {"testp", [](D& d) { return d.test(); }},
      {"and", [](D& d) { return d.logic(Op::bit_and, PredicateOp::and_); }},
      {"or", [](D& d) { return d.logic(Op::bit_or, PredicateOp::or_); }},
      {"xor", [](D& d) { return d.logic(Op::bit_xor, PredicateOp::xor_); }},
      {"not", [](D& d) { return d.logic(Op::bit_not, PredicateOp::not_); }},
      {"cnot", [](D& d) { return d.logic(Op::cnot, PredicateOp::not_); }},
      {"shl", [](D& d) { return d.shift(Op::shl); }},
      {"shr", [](D& d) { return d.shift(Op::shr); }},
      {"popc", [](D& d) { return d.bits(); }},
      {"clz", [](D& d) { return d.bits(); }},
      {"brev", [](D& d) { return d.bits(); }},
      {"bfind", [](D& d) { return d.bits(); }},
      {"bfe", [](D& d) { return d.bits(); }},
      {"bfi", [](D& d) { return d.bits(); }},
      {"lop3", [](D& d) { return d.bits(); }},
      {"shf", [](D& d) { return d.bits(); }},
      {"bmsk", [](D& d) { return d.bits(); }},
      {"szext", [](D& d) { return d.bits(); }},
      {"prmt", [](D& d) { return d.permute(); }},
      {"dp4a", [](D& d) { return d.dot(); }},
      {"dp2a", [](D& d) { return d.dot(); }},
      {"fns", [](D& d) { return d.arithmetic(Op::fns, 3); }},
      {"vabsdiff4", [](D& d) { return d.bytes_apart(); }},
      {"setp", [](D& d) { return d.compare(); }},
      {"set", [](D& d) { return d.compare(); }},
      {"selp", [](D& d) { return d.select(); }},
      {"slct", [](D& d) { return d.select(); }},
      {"cvt", [](D& d) { return d.convert(); }},
      {"mov", [](D& d) { return d.move(); }},
      {"ld", [](D& d) { return d.load(); }},
      {"ldu", [](D& d) { return d.load(); }},
      {"st", [](D& d) { return d.store(); }},
      {"atom", [](D& d) { return d.atomic(false); }},
      {"red", [](D& d) { return d.atomic(true); }},
      {"cvta", [](D& d) { return d.convert_address(); }},
      {"isspacep", [](D& d) { return d.is_space(); }},
      {"fence", [](D& d) { return d.fence(); }},
      {"membar", [](D& d) { return d.fence(); }},
      {"cp", [](D& d) { return d.copy_async(); }},
      {"ldmatrix", [](D& d) { return d.matrix_memory(false); }},
      {"stmatrix", [](D& d) { return d.matrix_memory(true); }},
      {"movmatrix", [](D& d) { return d.matrix(); }},
      {"mma", [](D& d) { return d.matrix(); }},
      {"wmma", [](D& d) { return d.warp_matrix(); }},
      {"mbarrier", [](D& d) { return d.barrier_object(); }},
      {"bra", [](D& d) { return d.branch(); }},
      {"brx", [](D& d) { return d.branch_table(); }},
      {"call", [](D& d) { return d.call(); }},
      {"shfl", [](D& d) { return d.shuffle(); }},
      {"vote", [](D& d) { return d.vote(); }},
      {"match", [](D& d) { return d.match(); }},
      {"elect", [](D& d) { return d.match(); }},
      {"redux", [](D& d) { return d.reduce(); }},
      {"bar", [](D& d) { return d.barrier(); }},
      {"barrier", [](D& d) { return d.barrier(); }},
  };
  const std::string_view name = at_->opcode;
  const auto found = kDecoders.find(name);
  if (found != kDecoders.end()) return found->second(*this);
  if (name == "activemask") {
    take("b32");
    if (Status enough = need(1, 1); !enough) return enough;
    Instr in = fresh();
    in.run = op_active_mask;
    if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
    emit(in);
    return all_taken();
  }
  // No effect that a program could see, or none at all; whatever modifiers they have.
  // Hints about caches among them: a cache policy is only ever given to hints.
  if (name == "createpolicy" || name == "prefetch" || name == "prefetchu" ||
      name == "applypriority" || name == "discard" || name == "setmaxnreg" ||
      name == "griddepcontrol" || name == "pmevent") {
    return plain(op_nothing);
  }
  Handler simple = nullptr;
  if (name == "ret") simple = op_return;
  if (name == "exit") simple = op_exit;
  if (name == "trap" || name == "brkpt") simple = op_trap;
  if (name == "nanosleep") simple = op_sleep;
  if (simple == nullptr) return refuse("unknown instruction");
  take_any({"uni", "u32"});
  if (Status taken = all_taken(); !taken) return taken;
  return plain(simple);
}

Status FunctionDecoder::decode() {
  if (!text_.entry) {
    for (uint32_t i = 0; i < text_.parameters.size() + text_.returns.size(); ++i) {
      const auto bytes =
          static_cast<uint32_t>(std::min<uint64_t>(body_.variables[i].bytes, 1 << 20));
      const Function::Part part{stack_place(i), bytes};
      (i < text_.parameters.size() ? out_.parameters : out_.returns).push_back(part);
    }
  }
  for (const Statement& statement : body_.statements) {
    at_ = &statement;
    taken_.assign(statement.modifiers.size(), false);
    first_instr_.push_back(static_cast<uint32_t>(out_.code.size()));
    if (Status decoded = this->statement(); !decoded) return decoded;
  }
  static const Statement& kEnd = *new Statement([] {
    Statement end;
    end.opcode = "ret";
    return end;
  }());
  at_ = &kEnd;
  taken_.clear();
  first_instr_.push_back(static_cast<uint32_t>(out_.code.size()));
  emit([] {
    Instr in;
    in.run = op_return;
    return in;
  }());
  if (out_.stack_bytes > 1 << 24)
    return usage_error(concat(text_.name, ": its stack is too large"));
  for (Instr& in : out_.code) {
    if (in.run == op_branch) in.imm = first_instr_[static_cast<size_t>(in.imm)];
    if (in.run != op_branch_table) continue;
    for (unsigned i = 0; i < in.count; ++i) {
      int64_t& target = draft_.kernel.lists[in.list + i];
      target = first_instr_[static_cast<size_t>(target)];
    }
  }
  return {};
}

}  // namespace sealane::ptx
