// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Vector registers keep what went through them: keys that were copied, states of a cipher. They are
// not memory, but become memory whenever somebody saves them: a signal handler, a loader that binds
// a function at its first call.
#pragma once

namespace sealane {

// All that a called function may change, to zeros; a few cycles.
void clear_vector_registers();

#ifdef __x86_64__
// The same for code that is compiled for AVX, or AVX512. (A register's upper parts go with the
// lower ones.) What is in memory is there before; what is in a general register has to be kept
// there by the caller, or the compiler may compute it behind.
[[gnu::target("avx"), gnu::always_inline]] inline void clear_avx_registers() {
  asm volatile("vzeroall"
               :
               :
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}
[[gnu::target("avx512f,avx512vl"), gnu::always_inline]] inline void clear_avx512_registers() {
  clear_avx_registers();
  asm volatile(
      ".irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
      "vpxord %%xmm\\n,%%xmm\\n,%%xmm\\n\n\t"
      ".endr"
      :
      :
      : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "memory");
}
#endif

}  // namespace sealane
