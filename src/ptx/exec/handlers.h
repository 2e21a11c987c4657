// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Handlers of everything that is not arithmetic of a lane: control, memory, warps, blocks, tensors.
// How their fields are meant is said where they are defined; the decoder fills them in.
//
// Each is called by the worker that runs the warp's block.
#pragma once

#include "ptx/kernel.h"

namespace sealane::ptx {

// control.cc
Flow op_branch(Warp&, const Instr&, uint32_t);        // imm: target
Flow op_branch_table(Warp&, const Instr&, uint32_t);  // a: index, list/count: targets
Flow op_call(Warp&, const Instr&, uint32_t);  // imm: function, d/a: returns, arguments in list
Flow op_call_address(Warp&, const Instr&, uint32_t);  // b: address
Flow op_call_builtin(Warp&, const Instr&, uint32_t);  // mode: Builtin
Flow op_return(Warp&, const Instr&, uint32_t);
Flow op_exit(Warp&, const Instr&, uint32_t);
Flow op_trap(Warp&, const Instr&, uint32_t);
Flow op_nothing(Warp&, const Instr&, uint32_t);
Flow op_sleep(Warp&, const Instr&, uint32_t);
Flow op_special(Warp&, const Instr&, uint32_t);  // mode: Special
Flow op_pack(Warp&, const Instr&, uint32_t);     // list/count: parts of a_bytes each
Flow op_unpack(Warp&, const Instr&, uint32_t);
Flow op_predicate(Warp&, const Instr&, uint32_t);  // mode: PredicateOp

enum class PredicateOp : uint8_t { move, not_, and_, or_, xor_ };
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  envreg1,
  envreg2,
  zero,
  one,
};

// memory.cc, address.cc, atomic.cc
Flow op_load(Warp&, const Instr&, uint32_t);
Flow op_store(Warp&, const Instr&, uint32_t);
Flow op_load_parameter(Warp&, const Instr&, uint32_t);  // imm: offset in the launch's buffer
Flow op_local_address(Warp&, const Instr&, uint32_t);   // imm: offset in the frame
Flow op_to_generic(Warp&, const Instr&, uint32_t);      // imm: the window
Flow op_from_generic(Warp&, const Instr&, uint32_t);
Flow op_is_space(Warp&, const Instr&, uint32_t);
Flow op_fence(Warp&, const Instr&, uint32_t);
Flow op_copy_async(Warp&, const Instr&,
                   uint32_t);                   // d: to (shared), a: from; bytes; c: source bytes
Flow op_atomic(Warp&, const Instr&, uint32_t);  // mode: AtomicOp; signs: no result

enum class AtomicOp : uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// together.cc
Flow op_shuffle(Warp&, const Instr&, uint32_t);  // mode: 0 up, 1 down, 2 bfly, 3 idx
Flow op_vote(Warp&, const Instr&, uint32_t);     // mode: 0 all, 1 any, 2 uni, 3 ballot
Flow op_match(Warp&, const Instr&, uint32_t);    // mode: 0 any, 1 all
Flow op_reduce(Warp&, const Instr&, uint32_t);   // mode: AtomicOp
Flow op_active_mask(Warp&, const Instr&, uint32_t);
Flow op_elect(Warp&, const Instr&, uint32_t);
Flow op_warp_barrier(Warp&, const Instr&, uint32_t);
Flow op_barrier(Warp&, const Instr&, uint32_t);  // mode: 0 sync, 1 arrive, 2.. red popc, and, or

// tensor.cc
Flow op_mma(Warp&, const Instr&, uint32_t);  // mode: MmaShape
Flow op_load_matrix(Warp&, const Instr&, uint32_t);
Flow op_store_matrix(Warp&, const Instr&, uint32_t);
Flow op_move_matrix(Warp&, const Instr&, uint32_t);

// warp_matrix.cc
Flow op_load_warp_matrix(Warp&, const Instr&, uint32_t);
Flow op_store_warp_matrix(Warp&, const Instr&, uint32_t);
Flow op_multiply_warp_matrix(Warp&, const Instr&, uint32_t);

// barrier_object.cc
Flow op_mbarrier(Warp&, const Instr&, uint32_t);

enum class MbarrierOp : uint8_t { init, inval, arrive, drop, wait, pending, touch };

struct MmaShape {
  uint8_t m, n, k;
  Type a, b, c;  // c: also of the result; f16 or f32 or s32 or f64
};
constexpr MmaShape kMmaShapes[] = {
    {16, 8, 16, Type::f16, Type::f16, Type::f32},   {16, 8, 16, Type::f16, Type::f16, Type::f16},
    {16, 8, 8, Type::f16, Type::f16, Type::f32},    {16, 8, 8, Type::f16, Type::f16, Type::f16},
    {16, 8, 16, Type::bf16, Type::bf16, Type::f32}, {16, 8, 8, Type::bf16, Type::bf16, Type::f32},
    {16, 8, 8, Type::tf32, Type::tf32, Type::f32},  {16, 8, 4, Type::tf32, Type::tf32, Type::f32},
    {8, 8, 4, Type::f64, Type::f64, Type::f64},     {16, 8, 32, Type::s8, Type::s8, Type::s32},
    {16, 8, 32, Type::u8, Type::u8, Type::s32},     {16, 8, 32, Type::s8, Type::u8, Type::s32},
    {16, 8, 32, Type::u8, Type::s8, Type::s32},     {16, 8, 16, Type::s8, Type::s8, Type::s32},
    {16, 8, 16, Type::u8, Type::u8, Type::s32},     {8, 8, 16, Type::s8, Type::s8, Type::s32},
    {8, 8, 16, Type::u8, Type::u8, Type::s32},
};

}  // namespace sealane::ptx
