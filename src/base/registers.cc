// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/registers.h"

#include "base/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>

#include <cstring>
#endif

namespace sealane {

#if defined(__x86_64__)
namespace {

using Clear = void (*)();

void clear_sse() {
  asm volatile(
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
      "pxor %%xmm\\n,%%xmm\\n\n\t"
      ".endr"
      :
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
[[gnu::target("avx")]] void clear_avx() { clear_avx_registers(); }
[[gnu::target("avx512f,avx512vl")]] void clear_avx512() { clear_avx512_registers(); }

// Where AVX512 is hidden, libc uses its registers all the same: one instruction that is not of
// AVX512 takes all of them back to how a process starts. Slower, and for tests alone.
[[gnu::target("xsave")]] void clear_hidden() {
  constexpr int kVectorParts = 0xe6;      // SSE, AVX, and three parts of AVX512
  alignas(64) uint8_t saved[576] = {};    // whose header says: nothing of them was saved
  const unsigned control = _mm_getcsr();  // is taken from there nevertheless
  std::memcpy(saved + 24, &control, sizeof control);
  asm volatile("xrstor %0"
               :
               : "m"(saved), "a"(kVectorParts), "d"(0)
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

bool hides_avx512() {
  const CpuFeatureState& avx512 = cpu_features()[static_cast<size_t>(CpuFeature::avx512)];
  return avx512.present && avx512.hidden;
}

Clear choose_clear() {
  if (cpu_has(CpuFeature::avx512)) return clear_avx512;
  if (hides_avx512()) return clear_hidden;
  return cpu_has(CpuFeature::avx) ? clear_avx : clear_sse;
}

}  // namespace

void clear_vector_registers() {
  static const Clear clear = choose_clear();
  clear();
}

#elif defined(__aarch64__)

// Not v8 to v15: who is called leaves their lower halves as they are.
void clear_vector_registers() {
  asm volatile(
      ".irp n,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
      "movi v\\n\\().2d,#0\n\t"
      ".endr"
      :
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
        "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

#else

void clear_vector_registers() {}

#endif

}  // namespace sealane
