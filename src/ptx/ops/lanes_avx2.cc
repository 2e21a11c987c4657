// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic over lanes, compiled for CPUs with AVX2, FMA and F16C.

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ptx/exec/warp.h"
#include "ptx/ops/half.h"
#include "ptx/ops/lanes.h"

namespace sealane::ptx {

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))), \
                             apply_to = function)
#define SEALANE_POP _Pragma("clang attribute pop")
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#define SEALANE_POP _Pragma("GCC pop_options")
#endif
namespace avx2 {
// Each needs the ones before it.
// clang-format off
#include "ptx/ops/lanes_common.inc"
#include "ptx/ops/lanes_integer.inc"
#include "ptx/ops/lanes_float.inc"
#include "ptx/ops/lanes_half.inc"
#include "ptx/ops/lanes_compare.inc"
#include "ptx/ops/lanes_convert.inc"
#include "ptx/ops/lanes_find.inc"
// clang-format on
}  // namespace avx2
SEALANE_POP

const Lanes* avx2_lanes() {
  static constexpr Lanes kMade{"avx2", avx2::find};
  static const bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("bmi2");
  return runs ? &kMade : nullptr;
}
#else
const Lanes* avx2_lanes() { return nullptr; }
#endif

}  // namespace sealane::ptx
