// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic over lanes: which handler an operation has, for the CPU this runs on.
//
// Stateless.
#pragma once

#include "ptx/kernel.h"

namespace sealane::ptx {

enum class Op : uint8_t {
  add,
  sub,
  mul_lo,
  mul_hi,
  mul_wide,
  mad_lo,
  mad_hi,
  mad_wide,
  mul24_lo,
  mul24_hi,
  mad24_lo,
  mad24_hi,
  add_cc,
  addc,
  addc_cc,
  sub_cc,
  subc,
  subc_cc,
  mad_lo_cc,
  madc_lo,
  madc_lo_cc,
  mad_hi_cc,
  madc_hi,
  madc_hi_cc,
  div,
  rem,
  abs,
  neg,
  min,
  max,
  min_nan,
  max_nan,
  sad,
  fma,
  fma_relu,
  copysign,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  cnot,
  shl,
  shr,
  popc,
  clz,
  bfind,
  bfind_shift,
  brev,
  bfe,
  bfi,
  prmt,
  prmt_f4e,
  prmt_b4e,
  prmt_rc8,
  prmt_ecl,
  prmt_ecr,
  prmt_rc16,
  lop3,
  shf_l_wrap,
  shf_l_clamp,
  shf_r_wrap,
  shf_r_clamp,
  bmsk_clamp,
  bmsk_wrap,
  szext_clamp,
  szext_wrap,
  rcp,
  sqrt,
  rsqrt,
  sin,
  cos,
  lg2,
  ex2,
  tanh,
  testp,
  mov,
  selp,
  slct,
  setp,
  set,
  cvt,
  cvt_pack,
  dp4a,
  dp2a_lo,
  dp2a_hi,
  fns,
  vabsdiff4,
  vabsdiff4_add,
};

enum class Round : uint8_t { none, rn, rz, rm, rp, rni, rzi, rmi, rpi, rna };

enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

// How a comparison and a predicate become one: none, with and, or, xor.
enum class Combine : uint8_t { none, and_, or_, xor_ };

struct OpKey {
  Op op = Op::add;
  Type type = Type::none;
  Type from = Type::none;  // of cvt, of set's operands, of slct's selector, of dp4a's second
  Round round = Round::none;
  Compare compare = Compare::eq;
  bool ftz = false;
  bool saturate = false;
  bool relu = false;
};

struct Lanes {
  const char* name;
  Handler (*find)(const OpKey& key);  // nullptr: there is no such operation
};

const Lanes& lanes();        // the best this CPU runs
const Lanes& plain_lanes();  // what every x86-64 runs
const Lanes* avx2_lanes();   // nullptr: not on this CPU

}  // namespace sealane::ptx
