// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: what is in the vector registers.
#pragma once

#ifdef __x86_64__

#include <array>
#include <cstdint>

#include "base/cpu.h"

namespace sealane {

// All of them, as wide as this CPU's are; zeros for those it does not have.
struct VectorRegisters {
  alignas(64) std::array<std::array<uint8_t, 64>, 32> bytes{};

  // Called directly behind what is looked at: whatever is in between may overwrite what that left.
  [[gnu::noinline, gnu::target("avx512f")]] void read_avx512() {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"
        "30,31\n\t"
        "vmovdqu64 %%zmm\\n,64*\\n(%0)\n\t"
        ".endr"
        :
        : "r"(&bytes)
        : "memory");
  }
  [[gnu::noinline, gnu::target("avx")]] void read_avx() {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
        "vmovdqu %%ymm\\n,64*\\n(%0)\n\t"
        ".endr"
        :
        : "r"(&bytes)
        : "memory");
  }
  [[gnu::noinline]] void read_sse() {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
        "movdqu %%xmm\\n,64*\\n(%0)\n\t"
        ".endr"
        :
        : "r"(&bytes)
        : "memory");
  }

  using Read = void (VectorRegisters::*)();
  static Read way_to_read() {
    const auto present = [](CpuFeature feature) {
      return cpu_features()[static_cast<size_t>(feature)].present;
    };
    if (present(CpuFeature::avx512)) return &VectorRegisters::read_avx512;
    return present(CpuFeature::avx) ? &VectorRegisters::read_avx : &VectorRegisters::read_sse;
  }

  // How many bytes in them are not zero.
  size_t used() const {
    size_t count = 0;
    for (const auto& one : bytes) {
      for (const uint8_t byte : one) count += byte != 0;
    }
    return count;
  }
};

}  // namespace sealane

#endif
