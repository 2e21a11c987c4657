// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes kernels.fatbin, which nvcc made of kernels.cu, into the program. The assembler finds it in
// the directory it runs in.

#include "kernels/image.h"

__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "sealane_kernel_image:\n"
    ".incbin \"kernels.fatbin\"\n"
    ".previous\n");

extern "C" const char sealane_kernel_image[];

namespace examples {

const void* kernel_image() { return sealane_kernel_image; }

}  // namespace examples
