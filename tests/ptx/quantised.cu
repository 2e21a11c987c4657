// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Device code that the tests run through quantised.ptx, which was made from this file:
//   nvcc -ptx -std=c++17 -arch=compute_80 quantised.cu -o quantised.ptx
// Products of 4-bit weights and activations rounded to 8 bits, as inference engines do them: values
// of a block of 32 share a scale; the weights' offset of 8 is taken off by the activations' sum.

#include <cuda_fp16.h>

#include "quantised.h"

// A warp for each block of 32 values.
extern "C" __global__ void quantise(const float* x, Activations* out) {
  const int block = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const float value = x[block * 32 + lane];
  float largest = fabsf(value);
  float sum = value;
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffff, sum, step));
  }
  const float scale = __fdiv_rn(largest, 127.0f);
  out[block].values[lane] = largest == 0 ? 0 : static_cast<signed char>(roundf(__fdiv_rn(value, scale)));
  if (lane != 0) return;
  out[block].scale = __half_as_ushort(__float2half_rn(scale));
  out[block].sum = __half_as_ushort(__float2half_rn(sum));
}

// A warp for each row of `blocks` blocks; two lanes share a block.
extern "C" __global__ void multiply(const Weights* weights, const Activations* activations, float* out, int blocks) {
  const int lane = threadIdx.x % 32;
  float total = 0;
  for (int i = lane; i < 2 * blocks; i += 32) {
    const Weights& w = weights[blockIdx.x * blocks + i / 2];
    const Activations& a = activations[i / 2];
    const int* low = reinterpret_cast<const int*>(a.values) + i % 2 * 2;
    int product = 0;
    for (int k = 0; k < 2; ++k) {
      int packed;
      memcpy(&packed, w.values + (i % 2 * 2 + k) * 4, 4);
      product = __dp4a(packed & 0x0f0f0f0f, low[k], product);
      product = __dp4a(packed >> 4 & 0x0f0f0f0f, low[k + 4], product);
    }
    const float scale = __half2float(__ushort_as_half(a.scale));
    const float sum = __half2float(__ushort_as_half(a.sum));
    const float part = __fmaf_rn(static_cast<float>(product), scale, -__fmul_rn(4.0f, sum));
    total = __fmaf_rn(__half2float(__ushort_as_half(w.scale)), part, total);
  }
  for (int step = 16; step > 0; step /= 2) total = __fadd_rn(total, __shfl_xor_sync(0xffffffff, total, step));
  if (lane == 0) out[blockIdx.x] = total;
}
