// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of tests/ptx/programs_test.cc, as kernels.ptx beside has them:
//   nvcc -std=c++17 -arch=compute_80 -ptx kernels.cu -o kernels.ptx

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cassert>
#include <cstdio>

#include "formulas.h"

namespace cg = cooperative_groups;

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ unsigned counter;
__device__ unsigned table[2][2] = {{1, 2}, {3, 4}};

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] * weights[i & 3];
}

extern "C" __global__ void all_formulas(const int32_t* a, int64_t* integers, double* doubles,
                                        uint32_t* steps, float* sorted, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  integers[i] = formulas::integers(a[i], a[(i + 1) % n]);
  doubles[i] = formulas::doubles(a[i] * 1e-3, a[(i + 1) % n] * 1e-6);
  steps[i] = formulas::collatz(static_cast<uint32_t>(a[i]) & 0xffff);
  sorted[i] = formulas::local_array(a[i]);
}

extern "C" __global__ void sum_all(const int* values, int n, int* out) {
  __shared__ int partial[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += values[i];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

extern "C" __global__ void matrix_product(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Every thread takes the same lock: lanes of a warp wait for each other.
extern "C" __global__ void locked(int* lock, volatile int* value) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *value = *value + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// A lane waits for one behind it in the same warp, without a lock.
extern "C" __global__ void relay(volatile int* turn, int* order) {
  const int lane = threadIdx.x;
  while (*turn != lane) {
  }
  order[lane] = lane * lane;
  __threadfence();
  *turn = lane + 1;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursive(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 13); }

struct Shape {
  __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
  __device__ int area(int x) const override { return x * x; }
};
__device__ __noinline__ int measure(const Shape& shape, int x) { return shape.area(x); }
extern "C" __global__ void virtual_calls(int* out) {
  Shape plain;
  Square square;
  const Shape* shape = threadIdx.x % 3 == 0 ? &plain : static_cast<const Shape*>(&square);
  out[threadIdx.x] = measure(*shape, threadIdx.x);
}

extern "C" __global__ void votes(uint32_t* out) {
  const int i = threadIdx.x;
  uint32_t value = __ballot_sync(~0u, i % 3 == 0);
  value += __any_sync(~0u, i == 7) + 2 * __all_sync(~0u, i < 40);
  value ^= __match_any_sync(~0u, i / 5);
  value += __popc(value) + __clz(value | 1) + __brev(i) + __ffs(i);
  if (i % 2 == 0) value ^= __shfl_sync(0x55555555u, value, (i + 2) % 32);
  out[i] = value + __reduce_add_sync(~0u, i) + __syncthreads_count(i % 2 == 0);
}

extern "C" __global__ void halves(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const __half a = __float2half(in[i]), b = __float2half(in[i] * 0.3f);
  const __half2 pair = __hfma2(__halves2half2(a, b), __halves2half2(b, a), __float2half2_rn(1.5f));
  const __nv_bfloat16 c = __float2bfloat16(in[i]);
  out[i] = __half2float(__hadd(a, b)) + __low2float(pair) - __high2float(pair) +
           __bfloat162float(__hmul(c, c)) + (a > b ? 1.0f : 2.0f);
}

extern "C" __global__ void grid_phases(int* sums, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    atomicAdd(&sums[round], static_cast<int>(blockIdx.x) + (round > 0 ? sums[round - 1] : 0));
    grid.sync();
  }
}

extern "C" __global__ void prints(int x) { printf("thread %d of %s: %5.2f %llu\n", x, "many", x * 0.5, 1ull << 40); }
extern "C" __global__ void asserts(int x) { assert(x == threadIdx.x); }
extern "C" __global__ void traps() { __trap(); }
extern "C" __global__ void writes(int* at, int index) { at[index] = 1; }
extern "C" __global__ void counts() { atomicAdd(&counter, table[threadIdx.x & 1][1]); }
extern "C" __global__ void device_heap(int* ok) {
  int* mine = static_cast<int*>(malloc(64));
  for (int i = 0; i < 16; ++i) mine[i] = threadIdx.x + i;
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum += mine[i];
  free(mine);
  ok[threadIdx.x] = sum;
}

// C (16x8) = A (16x16) B (16x8) by one warp, straight through fragments.
extern "C" __global__ void tensor(const __half* a, const __half* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t fa[4], fb[2];
  const auto pack = [](__half low, __half high) {
    return static_cast<uint32_t>(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
  };
  for (int r = 0; r < 4; ++r) {
    const int row = g + 8 * (r & 1), column = 2 * t + 8 * (r >> 1);
    fa[r] = pack(a[row * 16 + column], a[row * 16 + column + 1]);
  }
  for (int r = 0; r < 2; ++r) fb[r] = pack(b[(2 * t + 8 * r) * 8 + g], b[(2 * t + 8 * r + 1) * 8 + g]);
  float d[4] = {0, 0, 0, 0};
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) c[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = d[i];
}

extern "C" __global__ void fma_loop(float* out, int rounds) {
  float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 0.25f;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      a = fmaf(a, b, c);
      d = fmaf(d, b, a);
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + d;
}

// Whole warps, sixteen bytes a thread, a grid's width apart: how device code copies memory.
extern "C" __global__ void copy_vectors(uint4* to, const uint4* from, int count) {
  const int step = gridDim.x * blockDim.x;
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) to[i] = from[i];
}
