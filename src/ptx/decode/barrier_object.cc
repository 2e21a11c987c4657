// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Barriers that are objects in shared memory: mbarrier.*, and copies that arrive at them.

#include "ptx/decode/function_decoder.h"

namespace sealane::ptx {

// mbarrier.init [a], count; .inval [a]; .arrive[_drop][.noComplete] state, [a][, count];
// .test_wait/.try_wait[.parity] p, [a], state|parity[, hint]; .pending_count count, state
Status FunctionDecoder::barrier_object() {
  static constexpr std::pair<std::string_view, MbarrierOp> kOps[] = {
      {"init", MbarrierOp::init},
      {"inval", MbarrierOp::inval},
      {"arrive", MbarrierOp::arrive},
      {"arrive_drop", MbarrierOp::drop},
      {"test_wait", MbarrierOp::wait},
      {"try_wait", MbarrierOp::wait},
      {"pending_count", MbarrierOp::pending}};
  Instr in = fresh();
  bool known = false;
  for (const auto& [name, op] : kOps) {
    if (known || !take(name)) continue;
    in.mode = static_cast<uint8_t>(op);
    known = true;
  }
  if (!known) return refuse("not supported");
  const auto op = static_cast<MbarrierOp>(in.mode);
  take_any({"acquire", "release", "relaxed", "cta", "cluster", "b64", "noComplete"});
  const bool parity = op == MbarrierOp::wait && take("parity");
  if (take("shared::cta")) in.space = Space::shared;
  take_space(in.space);
  if (Status taken = all_taken(); !taken) return taken;
  in.run = op_mbarrier;
  switch (op) {
    case MbarrierOp::init:
      return barrier_object_at(in, 0, 1, Type::u32);
    case MbarrierOp::inval:
      return barrier_object_at(in, 0, SIZE_MAX, Type::u32);
    case MbarrierOp::arrive:
    case MbarrierOp::drop:
      if (Status enough = need(2, 3); !enough) return enough;
      if (Status read = set(in.d, destination(at_->operands[0], 8)); !read) return read;
      return barrier_object_at(in, 1, at_->operands.size() > 2 ? 2 : SIZE_MAX, Type::u32);
    case MbarrierOp::wait:
      if (Status enough = need(3, 4); !enough) return enough;
      if (Status read = set(in.d, predicate(at_->operands[0])); !read) return read;
      if (in.d < 0) return refuse("the destination is a constant");
      in.signs = parity;
      return barrier_object_at(in, 1, 2, parity ? Type::u32 : Type::b64);
    default:
      if (Status enough = need(2, 2); !enough) return enough;
      if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
      if (Status read = set(in.b, source(at_->operands[1], Type::b64)); !read) return read;
      emit(in);
      return {};
  }
}

// The barrier's address is operand `at`; operand `value` goes to b. SIZE_MAX: there is none, it
// counts as 1.
Status FunctionDecoder::barrier_object_at(Instr& in, size_t at, size_t value, Type type) {
  const size_t wanted = value == SIZE_MAX ? at + 1 : value + 1;
  if (Status enough = need(wanted, wanted + 1); !enough) return enough;
  in.b = draft_.constant(1, 4);
  if (value != SIZE_MAX) {
    if (Status read = set(in.b, source(at_->operands[value], type)); !read) return read;
  }
  if (Status read = address(at_->operands[at], in); !read) return read;
  emit(in);
  return {};
}

// cp.async.mbarrier.arrive[.noinc][.shared].b64 [a]. Copies are done at once: what was added for
// them is taken away at once, so only .noinc, which adds nothing, changes anything.
Status FunctionDecoder::copies_arrive() {
  Instr in = fresh();
  if (!take("arrive")) return refuse("not supported");
  const bool counts = take("noinc");
  take("b64");
  if (take("shared::cta")) in.space = Space::shared;
  take_space(in.space);
  if (Status taken = all_taken(); !taken) return taken;
  in.run = op_mbarrier;
  in.mode = static_cast<uint8_t>(counts ? MbarrierOp::arrive : MbarrierOp::touch);
  in.d = scratch(8);
  return barrier_object_at(in, 0, SIZE_MAX, Type::u32);
}

}  // namespace sealane::ptx
