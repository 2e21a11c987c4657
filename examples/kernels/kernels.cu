// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels for a real GPU: one thread per item. Build it with nvcc (docs/examples.md).

#include "kernels/kernels.h"

#define SEALANE_KERNEL(type, name)                                             \
  extern "C" __global__ void name(examples::type kernel) {                     \
    const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;            \
    if (i < kernel.items()) kernel.item(i);                                    \
  }
SEALANE_EXAMPLE_KERNELS(SEALANE_KERNEL)
#undef SEALANE_KERNEL
