// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic over lanes, compiled for every CPU of the architecture.

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
namespace plain {
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
}  // namespace plain

const Lanes& plain_lanes() {
  static constexpr Lanes made{"plain", plain::find};
  return made;
}

const Lanes& lanes() {
  static const Lanes& best = avx2_lanes() != nullptr ? *avx2_lanes() : plain_lanes();
  return best;
}

}  // namespace sealane::ptx
