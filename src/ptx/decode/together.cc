// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What lanes do together: shuffles, votes, matches, reductions, barriers.

#include "ptx/decode/function_decoder.h"

namespace sealane::ptx {

Status FunctionDecoder::shuffle() {
  static constexpr std::string_view kModes[] = {"up", "down", "bfly", "idx"};
  Instr in = fresh();
  if (!take("sync")) return refuse("only .sync is supported");
  bool known = false;
  for (uint8_t i = 0; i < 4; ++i) {
    if (take(kModes[i])) in.mode = i, known = true;
  }
  take("b32");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(5, 5); !enough || !known) return refuse("no such operation");
  const Operand& d = at_->operands[0];
  const bool pair = d.kind == Operand::Kind::pair;
  if (Status read = set(in.a, source(at_->operands[1], Type::b32)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], Type::b32)); !read) return read;
  if (Status read = set(in.c, source(at_->operands[3], Type::b32)); !read) return read;
  int32_t members = 0, valid = -1;
  if (Status read = set(members, source(at_->operands[4], Type::b32)); !read) return read;
  if (Status read = set(in.d, destination(pair ? d.parts[0] : d, 4)); !read) return read;
  if (pair) {
    if (Status read = set(valid, predicate(d.parts[1])); !read) return read;
  }
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  draft_.kernel.lists.push_back(members);
  draft_.kernel.lists.push_back(valid);
  in.run = op_shuffle;
  emit(in);
  return {};
}

Status FunctionDecoder::vote() {
  static constexpr std::string_view kModes[] = {"all", "any", "uni", "ballot"};
  Instr in = fresh();
  if (!take("sync")) return refuse("only .sync is supported");
  bool known = false;
  for (uint8_t i = 0; i < 4; ++i) {
    if (take(kModes[i])) in.mode = i, known = true;
  }
  take_any({"pred", "b32"});
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(3, 3); !enough || !known) return refuse("no such operation");
  in.signs = at_->operands[1].negated;
  if (Status read = set(in.a, predicate(at_->operands[1])); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], Type::b32)); !read) return read;
  if (in.mode == 3) {
    if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
  } else if (Status read = set(in.d, predicate(at_->operands[0])); !read) {
    return read;
  }
  if (in.d < 0) return refuse("the destination is a constant");
  in.run = op_vote;
  emit(in);
  return {};
}

// match.{any,all}.sync.type d[|p], a, members; redux; elect; activemask
Status FunctionDecoder::match() {
  Instr in = fresh();
  const bool elects = at_->opcode == "elect";
  if (!take("sync")) return refuse("only .sync is supported");
  in.mode = take("all") ? 1 : 0;
  take("any");
  const Type type = elects ? Type::b32 : take_type();
  if (Status taken = all_taken(); !taken) return taken;
  const size_t count = elects ? 2 : 3;
  if (Status enough = need(count, count); !enough) return enough;
  if (bytes_of(type) != 4 && bytes_of(type) != 8) return refuse("no such operation");
  in.a_bytes = static_cast<uint8_t>(bytes_of(type));
  const Operand& d = at_->operands[0];
  const bool pair = d.kind == Operand::Kind::pair;
  in.c = -1;
  if (!elects) {
    if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  }
  if (Status read = set(in.b, source(at_->operands[count - 1], Type::b32)); !read) return read;
  if (Status read = set(in.d, destination(pair ? d.parts[0] : d, 4)); !read) return read;
  if (pair) {
    if (Status read = set(in.c, predicate(d.parts[1])); !read) return read;
  }
  in.run = elects ? op_elect : op_match;
  emit(in);
  return {};
}

Status FunctionDecoder::reduce() {
  static constexpr std::pair<std::string_view, AtomicOp> kOps[] = {
      {"add", AtomicOp::add},  {"min", AtomicOp::min}, {"max", AtomicOp::max},
      {"and", AtomicOp::and_}, {"or", AtomicOp::or_},  {"xor", AtomicOp::xor_}};
  Instr in = fresh();
  if (!take("sync")) return refuse("only .sync is supported");
  bool known = false;
  for (const auto& [name, op] : kOps) {
    if (take(name)) in.mode = static_cast<uint8_t>(op), known = true;
  }
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(3, 3); !enough) return enough;
  if (!known || !is_integer(type) || bytes_of(type) != 4) return refuse("no such operation");
  in.signs = type == Type::s32;
  if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  if (Status read = set(in.b, source(at_->operands[2], Type::b32)); !read) return read;
  if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
  in.run = op_reduce;
  emit(in);
  return {};
}

// bar and barrier: .sync, .arrive, .red.op, .warp.sync; barrier.cluster is not there.
Status FunctionDecoder::barrier() {
  Instr in = fresh();
  take_any({"cta", "aligned"});
  if (take("warp")) {
    take("sync");
    if (Status taken = all_taken(); !taken) return taken;
    if (Status enough = need(1, 1); !enough) return enough;
    if (Status read = set(in.b, source(at_->operands[0], Type::b32)); !read) return read;
    in.run = op_warp_barrier;
    in.flag = true;
    emit(in);
    return {};
  }
  size_t next = 0;
  const bool reduces = take("red");
  if (reduces) {
    in.mode = take("popc") ? 2 : take("and") ? 3 : take("or") ? 4 : 0;
    if (in.mode == 0) return refuse("no such operation");
    take_any({"u32", "pred"});
  } else if (take("arrive")) {
    in.mode = 1;
  } else if (!take("sync")) {
    return refuse("no such operation");
  }
  if (Status taken = all_taken(); !taken) return taken;
  const size_t have = at_->operands.size();
  if (Status enough = need(reduces ? 3 : 1, reduces ? 4 : 2); !enough) return enough;
  if (reduces) {
    const Operand& d = at_->operands[next++];
    if (Status read = set(in.d, in.mode == 2 ? destination(d, 4) : predicate(d)); !read)
      return read;
    if (in.d < 0) return refuse("the destination is a constant");
  }
  if (Status read = set(in.a, source(at_->operands[next++], Type::b32)); !read) return read;
  in.count = 1;
  if (next + (reduces ? 1 : 0) < have) {
    in.count = 2;
    if (Status read = set(in.b, source(at_->operands[next++], Type::b32)); !read) return read;
  }
  if (reduces) {
    in.signs = at_->operands[next].negated;
    if (Status read = set(in.c, predicate(at_->operands[next])); !read) return read;
  }
  if (in.mode == 1 && in.count == 1) return refuse("arrive needs a number of threads");
  in.run = op_barrier;
  emit(in);
  return {};
}

}  // namespace sealane::ptx
