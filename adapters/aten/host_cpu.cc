// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "host_cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdlib.h>

namespace sealane::aten {
namespace {

#if defined(__x86_64__)
bool has_matrix_unit_without_tiles() {
  constexpr unsigned kFeatures = 7, kTiles = 0x1d;
  constexpr unsigned kMatrixUnit = 1u << 24;  // AMX-TILE, in edx
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kMatrixUnit) == 0) return false;
  if (__get_cpuid_count(kTiles, 0, &eax, &ebx, &ecx, &edx) == 0) return true;
  return eax == 0;  // the highest palette
}
#else
bool has_matrix_unit_without_tiles() { return false; }
#endif

}  // namespace

void avoid_matrix_unit_without_tiles() {
  constexpr int kKeep = 0;
  if (has_matrix_unit_without_tiles()) setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", kKeep);
}

}  // namespace sealane::aten
