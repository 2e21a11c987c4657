// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes the fat binary nvcc made of kernels.cu into the program. SEALANE_KERNEL_IMAGE is its path,
// in quotes.

#include "kernels/image.h"

__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "sealane_kernel_image:\n"
    ".incbin " SEALANE_KERNEL_IMAGE
    "\n"
    ".previous\n");

extern "C" const char sealane_kernel_image[];

namespace examples {

const void* kernel_image() { return sealane_kernel_image; }

}  // namespace examples
