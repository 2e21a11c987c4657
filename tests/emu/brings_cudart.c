/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program with a DT_RPATH to a CUDA runtime of its own. */

#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  printf("%d devices, error %d\n", count, (int)result);
  return result == cudaSuccess && count > 0 ? 0 : 1;
}
