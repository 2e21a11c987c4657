// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory: loads, stores, atomics, addresses, asynchronous copies, matrices in shared memory.

#include <algorithm>

#include "base/text.h"
#include "ptx/decode/function_decoder.h"

namespace sealane::ptx {
namespace {

uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
      return kSharedWindow;
    case Space::local:
      return kLocalWindow;
    case Space::param:
      return kParamWindow;
    default:
      return 0;
  }
}

// Hand-written code puts a single register into braces, too.
const Operand& without_braces(const Operand& operand) {
  const bool one = operand.kind == Operand::Kind::vector && operand.parts.size() == 1;
  return one ? operand.parts[0] : operand;
}

unsigned vector_count(const Operand& operand) {
  return operand.kind == Operand::Kind::vector ? static_cast<unsigned>(operand.parts.size()) : 1;
}

}  // namespace

// ld[.volatile|.relaxed.scope|.acquire.scope|.weak][.space][.cop][.nc][.vec].type d, [a]
Status FunctionDecoder::load() {
  Instr in = fresh();
  const bool watched = take("volatile") || take("relaxed") || take("acquire") || take("mmio");
  take_any({"weak",
            "gpu",
            "sys",
            "cta",
            "cluster",
            "nc",
            "ca",
            "cg",
            "cs",
            "lu",
            "cv",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
            "L2::evict_first",
            "L2::evict_last",
            "L2::evict_normal",
            "L2::64B",
            "L2::128B",
            "L2::256B",
            "unified",
            "v2",
            "v4",
            "v8"});
  if (at_->opcode == "ldu") take("ldu");
  take_space(in.space);
  const Type type = take_type();
  const unsigned operands = take("L2::cache_hint") ? 3 : 2;  // the policy comes last
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(operands, operands); !enough) return enough;
  const Operand& d = without_braces(at_->operands[0]);
  const unsigned count = vector_count(d);
  const unsigned vector = at_->has("v2") ? 2 : at_->has("v4") ? 4 : at_->has("v8") ? 8 : 1;
  const unsigned bytes = bytes_of(type);
  if (count != vector || bytes == 0 || bytes > 8 || type == Type::pred || bytes * count > 32) {
    return refuse("no such load");
  }
  const Operand& first = count > 1 ? d.parts[0] : d;
  unsigned room = 0;
  for (unsigned i = 0; i < count && room == 0; ++i) room = width(count > 1 ? d.parts[i] : first);
  if (room == 0) room = std::max(2u, bytes);
  if (room < bytes) return refuse("a register has another width");
  in.bytes = static_cast<uint8_t>(bytes);
  in.d_bytes = static_cast<uint8_t>(room);
  in.signs = is_signed(type);
  in.mode = watched && in.space != Space::shared && in.space != Space::local ? 1 : 0;
  in.run = op_load;
  in.count = 1;
  if (count > 1) {
    if (Status read = list(in, d, type, true, room); !read) return read;
  } else if (Status read = set(in.d, destination(d, room)); !read) {
    return read;
  }
  if (Status read = address(at_->operands[1], in); !read) return read;
  const Operand& base = at_->operands[1].parts[0];
  const bool named = base.kind == Operand::Kind::variable;
  if (in.space == Space::param && named) {
    // Of an entry; a function's own are on its stack.
    Space space;
    const auto at = symbol(base, space);
    const uint64_t end = draft_.kernel.parameter_bytes;
    const uint64_t from = *at + static_cast<uint64_t>(in.imm);
    if (from > end || uint64_t{bytes} * count > end - from)
      return refuse("outside of its parameter");
    in.imm = static_cast<int64_t>(from);
    in.run = op_load_parameter;
  } else if (in.space == Space::param && !text_.entry) {
    in.space = Space::local;
  }
  emit(in);
  return {};
}

Status FunctionDecoder::store() {
  Instr in = fresh();
  take_any({"volatile",
            "relaxed",
            "release",
            "mmio",
            "weak",
            "gpu",
            "sys",
            "cta",
            "cluster",
            "wb",
            "cg",
            "cs",
            "wt",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
            "v2",
            "v4",
            "v8"});
  const bool orders = at_->has("release");
  take_space(in.space);
  const Type type = take_type();
  const unsigned operands = take("L2::cache_hint") ? 3 : 2;
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(operands, operands); !enough) return enough;
  const Operand& a = without_braces(at_->operands[1]);
  const unsigned count = vector_count(a);
  const unsigned vector = at_->has("v2") ? 2 : at_->has("v4") ? 4 : at_->has("v8") ? 8 : 1;
  const unsigned bytes = bytes_of(type);
  if (count != vector || bytes == 0 || bytes > 8 || type == Type::pred || bytes * count > 32) {
    return refuse("no such store");
  }
  if (in.space == Space::constant) return refuse("constants are not written");
  unsigned room = 0;
  for (unsigned i = 0; i < count && room == 0; ++i) room = width(count > 1 ? a.parts[i] : a);
  if (room == 0) room = std::max(2u, bytes);
  if (room < bytes) return refuse("a register has another width");
  in.bytes = static_cast<uint8_t>(bytes);
  in.d_bytes = static_cast<uint8_t>(room);
  in.mode = at_->has("volatile") || at_->has("relaxed") || orders ? 1 : 0;
  in.run = op_store;
  in.count = 1;
  // Immediates are made as wide as the registers beside them; floats have their own width.
  const bool same = room == std::max(2u, bytes);
  const Type as = same && bytes > 1 ? type
                  : room == 8       ? Type::b64
                  : room == 4       ? Type::b32
                                    : Type::b16;
  if (count > 1) {
    if (Status read = list(in, a, as, false, room); !read) return read;
  } else if (Status read = set(in.d, source(a, as)); !read) {
    return read;
  }
  if (Status read = address(at_->operands[0], in); !read) return read;
  if (in.space == Space::param) {
    if (text_.entry) return refuse("parameters of a kernel are not written");
    in.space = Space::local;
  }
  if (orders) {
    Instr before = fresh();
    before.run = op_fence;
    emit(before);
  }
  emit(in);
  return {};
}

// atom[.sem][.scope][.space].op.type d, [a], b[, c]; red the same without d.
Status FunctionDecoder::atomic(bool reduces) {
  static constexpr std::pair<std::string_view, AtomicOp> kOps[] = {
      {"add", AtomicOp::add}, {"min", AtomicOp::min},  {"max", AtomicOp::max},
      {"inc", AtomicOp::inc}, {"dec", AtomicOp::dec},  {"and", AtomicOp::and_},
      {"or", AtomicOp::or_},  {"xor", AtomicOp::xor_}, {"exch", AtomicOp::exch},
      {"cas", AtomicOp::cas}};
  Instr in = fresh();
  take_any({"relaxed", "acquire", "release", "acq_rel", "gpu", "sys", "cta", "cluster", "noftz"});
  take_space(in.space);
  bool known = false;
  for (const auto& [name, op] : kOps) {
    if (known || !take(name)) continue;
    in.mode = static_cast<uint8_t>(op);
    known = true;
  }
  const bool vector = take("v2") || take("v4") || take("v8");
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  const auto op = static_cast<AtomicOp>(in.mode);
  const size_t skipped = reduces ? 0 : 1;
  const size_t count = 2 + skipped + (op == AtomicOp::cas ? 1 : 0);
  if (Status enough = need(count, count); !enough) return enough;
  const unsigned bytes = bytes_of(type);
  const bool small =
      type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2;
  const bool floats = type == Type::f32 || type == Type::f64 || small;
  const bool float_fits = op == AtomicOp::add || op == AtomicOp::exch ||
                          (small && (op == AtomicOp::min || op == AtomicOp::max));
  const bool words =
      is_integer(type) && (bytes == 4 || bytes == 8 || (bytes == 2 && op == AtomicOp::cas));
  if (!known || !((floats && float_fits && op != AtomicOp::exch) || words))
    return refuse("no such operation");
  in.bytes = in.d_bytes = static_cast<uint8_t>(bytes);
  in.count = static_cast<uint16_t>(type);
  in.run = op_atomic;
  in.signs = reduces;
  if (vector) return atomic_vector(in, type);
  if (Status read = set(in.b, source(at_->operands[1 + skipped], type)); !read) return read;
  in.c = in.b;
  if (op == AtomicOp::cas) {
    if (Status read = set(in.c, source(at_->operands[3], type)); !read) return read;
  }
  if (!reduces) {
    if (Status read = set(in.d, destination(at_->operands[0], bytes)); !read) return read;
  }
  if (Status read = address(at_->operands[skipped], in); !read) return read;
  emit(in);
  return {};
}

// Each element is an atomic of its own; sources are read before a destination is written.
Status FunctionDecoder::atomic_vector(Instr in, Type type) {
  const bool reduces = in.signs;
  const Operand& sources = at_->operands[reduces ? 1 : 2];
  const size_t count = at_->has("v2") ? 2 : at_->has("v4") ? 4 : 8;
  const auto fits = [&](const Operand& one) {
    return one.kind == Operand::Kind::vector && one.parts.size() == count;
  };
  if (!is_float(type) || type == Type::f64 || count * bytes_of(type) > 16 || !fits(sources) ||
      !(reduces || fits(at_->operands[0]))) {
    return refuse("no such operation");
  }
  if (Status read = address(at_->operands[reduces ? 0 : 1], in); !read) return read;
  const int64_t first = in.imm;
  std::vector<int32_t> olds;
  for (size_t k = 0; k < count; ++k) {
    in.imm = first + static_cast<int64_t>(k * in.bytes);
    if (Status read = set(in.b, source(sources.parts[k], type)); !read) return read;
    in.c = in.b;
    in.d = scratch(4);
    olds.push_back(in.d);
    emit(in);
  }
  for (size_t k = 0; k < count && !reduces; ++k) {
    Instr move = fresh();
    move.a = olds[k];
    const Operand& d = at_->operands[0].parts[k];
    if (Status read = set(move.d, destination(d, in.bytes)); !read) return read;
    if (Status made = emit_op({Op::mov, in.bytes == 2 ? Type::b16 : Type::b32}, move); !made) {
      return made;
    }
  }
  return {};
}

// cvta[.to].space.size d, a: a register, a name, or a name and an offset.
Status FunctionDecoder::convert_address() {
  const bool to = take("to");
  Instr in = fresh();
  Space space = Space::generic;
  take_space(space);
  const Type type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  if (type != Type::u64 && type != Type::u32) return refuse("no such operation");
  if (!to && space == Space::param && !text_.entry) space = Space::local;
  in.run = to ? op_from_generic : op_to_generic;
  in.imm = static_cast<int64_t>(window_of(space));
  in.d_bytes = in.a_bytes = static_cast<uint8_t>(bytes_of(type));
  if (Status read = set(in.a, source(at_->operands[1], type)); !read) return read;
  if (Status read = set(in.d, destination(at_->operands[0], in.d_bytes)); !read) return read;
  emit(in);
  return {};
}

Status FunctionDecoder::is_space() {
  Instr in = fresh();
  Space space = Space::generic;
  if (!take_space(space)) return refuse("it has no space");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  in.run = op_is_space;
  in.imm = static_cast<int64_t>(window_of(space));
  // Constants live in global memory here, and nobody can tell.
  if (space == Space::constant) in.imm = int64_t{64} << 48;
  in.a_bytes = static_cast<uint8_t>(std::max(4u, width(at_->operands[1])));
  if (Status read = set(in.a, source(at_->operands[1], in.a_bytes == 8 ? Type::b64 : Type::b32));
      !read) {
    return read;
  }
  if (Status read = set(in.d, predicate(at_->operands[0])); !read) return read;
  if (in.d < 0) return refuse("the destination is a constant");
  emit(in);
  return {};
}

Status FunctionDecoder::fence() {
  take_any({"sc", "acq_rel", "acquire", "release", "cta", "gpu", "sys", "gl", "cluster", "level",
            "proxy", "async", "alias", "mbarrier_init"});
  if (Status taken = all_taken(); !taken) return taken;
  return plain(op_fence);
}

// cp.async.{ca,cg}.shared.global[...] [to], [from], size[, source size][, ignore]; commit, wait.
Status FunctionDecoder::copy_async() {
  if (!take("async")) return refuse("not supported");
  if (take("mbarrier")) return copies_arrive();
  if (take("commit_group") || take("wait_group") || take("wait_all")) {
    if (Status taken = all_taken(); !taken) return taken;
    return plain(op_nothing);
  }
  take_any({"ca", "cg", "global", "L2::64B", "L2::128B", "L2::256B"});
  if (!take("shared") && !take("shared::cta")) return refuse("not supported");
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(3, 4); !enough) return enough;
  const Operand& size = at_->operands[2];
  const bool sane =
      size.kind == Operand::Kind::integer && (size.bits == 4 || size.bits == 8 || size.bits == 16);
  if (!sane) return refuse("it copies 4, 8 or 16 bytes");
  Instr to = fresh();
  to.space = Space::shared;
  if (Status read = address(at_->operands[0], to); !read) return read;
  Instr in = fresh();
  in.space = Space::global;
  if (Status read = address(at_->operands[1], in); !read) return read;
  if (in.a_bytes != 8 || in.flag || to.flag) return refuse("not supported");
  in.run = op_copy_async;
  in.d = to.a;
  in.d_bytes = to.a_bytes;
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  draft_.kernel.lists.push_back(to.imm);
  in.bytes = static_cast<uint8_t>(size.bits);
  in.count = 1;
  if (at_->operands.size() == 4) {
    const Operand& more = at_->operands[3];
    const bool ignores =
        more.kind == Operand::Kind::reg && body_.registers[more.index] == Type::pred;
    if (ignores) {
      in.signs = true;
      if (Status read = set(in.b, predicate(more)); !read) return read;
    } else {
      in.count = 2;
      if (Status read = set(in.c, source(more, Type::u32)); !read) return read;
    }
  }
  emit(in);
  return {};
}

// ldmatrix.sync.aligned.m8n8.num[.trans][.space].b16 r, [p] and stmatrix the other way round.
Status FunctionDecoder::matrix_memory(bool stores) {
  Instr in = fresh();
  take_any({"sync", "aligned", "m8n8", "b16"});
  const unsigned count = take("x4") ? 4 : take("x2") ? 2 : take("x1") ? 1 : 0;
  in.signs = take("trans");
  in.space = Space::generic;
  take_space(in.space);
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(2, 2); !enough) return enough;
  Operand registers = at_->operands[stores ? 1 : 0];
  if (registers.kind == Operand::Kind::reg) {
    Operand one;
    one.kind = Operand::Kind::vector;
    one.parts.push_back(registers);
    registers = std::move(one);
  }
  if (registers.parts.size() != count || count == 0) return refuse("no such operation");
  if (Status read = list(in, registers, Type::b32, !stores, 4); !read) return read;
  if (Status read = address(at_->operands[stores ? 0 : 1], in); !read) return read;
  in.run = stores ? op_store_matrix : op_load_matrix;
  emit(in);
  return {};
}

// mma.sync.aligned.shape.row.col[.satfinite].d.a.b.c d, a, b, c; movmatrix
Status FunctionDecoder::matrix() {
  Instr in = fresh();
  if (at_->opcode == "movmatrix") {
    take_any({"sync", "aligned", "m8n8", "trans", "b16"});
    if (Status taken = all_taken(); !taken) return taken;
    if (Status enough = need(2, 2); !enough) return enough;
    if (Status read = set(in.a, source(at_->operands[1], Type::b32)); !read) return read;
    if (Status read = set(in.d, destination(at_->operands[0], 4)); !read) return read;
    in.run = op_move_matrix;
    emit(in);
    return {};
  }
  take_any({"sync", "aligned", "row", "col"});
  int found = -1;
  Type types[4] = {Type::none, Type::none, Type::none, Type::none};
  std::string_view shape;
  for (size_t i = 0; i < at_->modifiers.size(); ++i) {
    if (at_->modifiers[i].starts_with('m') && !taken_[i]) {
      shape = at_->modifiers[i];
      taken_[i] = true;
    }
  }
  for (Type& type : types) type = take_type();
  if (Status taken = all_taken(); !taken) return taken;
  if (Status enough = need(4, 4); !enough) return enough;
  for (size_t i = 0; i < std::size(kMmaShapes); ++i) {
    const MmaShape& s = kMmaShapes[i];
    const std::string name = concat("m", unsigned{s.m}, "n", unsigned{s.n}, "k", unsigned{s.k});
    if (name == shape && s.c == types[0] && s.a == types[1] && s.b == types[2] && s.c == types[3]) {
      found = static_cast<int>(i);
    }
  }
  if (found < 0) return refuse("this shape or these types are not supported");
  const MmaShape& s = kMmaShapes[found];
  const unsigned per = s.a == Type::f64 || s.a == Type::tf32 ? 1 : 4 / bytes_of(s.a);
  const unsigned c = s.m * s.n / 32 / (s.c == Type::f16 ? 2 : 1);
  const unsigned wanted[] = {c, s.m * s.k / (32 * per), s.n * s.k / (32 * per), c};
  const bool wide = s.a == Type::f64;
  std::vector<int64_t> places;
  for (size_t i = 0; i < 4; ++i) {
    Operand group = at_->operands[i];
    if (group.kind == Operand::Kind::reg) {
      Operand one;
      one.parts.push_back(group);
      group = std::move(one);
    }
    if (group.parts.size() != wanted[i]) return refuse("another number of registers belongs here");
    Instr part = fresh();
    const Type as = wide ? Type::b64 : Type::b32;
    if (Status read = list(part, group, as, i == 0, wide ? 8 : 4); !read) return read;
    for (unsigned k = 0; k < part.count; ++k) places.push_back(draft_.kernel.lists[part.list + k]);
  }
  in.list = static_cast<uint32_t>(draft_.kernel.lists.size());
  draft_.kernel.lists.insert(draft_.kernel.lists.end(), places.begin(), places.end());
  in.run = op_mma;
  in.mode = static_cast<uint8_t>(found);
  in.cost = static_cast<uint16_t>(2u * s.m * s.n * s.k / 32);
  emit(in);
  return {};
}

}  // namespace sealane::ptx
