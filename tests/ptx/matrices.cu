// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Device code that the tests run through matrices.ptx, which was made from this file:
//   nvcc -ptx -std=c++17 -arch=compute_80 matrices.cu -o matrices.ptx
// What newer language features make of ordinary code: matrices of a warp, barriers that are objects,
// vectors that another block reads while they are written.

#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// d = 2 a b + c, for one tile; a by row, b by column with a stride, d by column.
template <typename T, typename Sum, int M, int N, int K>
__device__ void tile(const T* a, const T* b, const Sum* c, Sum* d, int stride) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
  wmma::load_matrix_sync(left, a, K);
  wmma::load_matrix_sync(right, b, stride);
  wmma::fill_fragment(sum, Sum(0));
  wmma::mma_sync(sum, left, right, sum);
  wmma::fragment<wmma::accumulator, M, N, K, Sum> more;
  wmma::load_matrix_sync(more, c, N, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] * Sum(2) + more.x[i];
  wmma::store_matrix_sync(d, sum, M, wmma::mem_col_major);
}

extern "C" __global__ void tile_half(const __half* a, const __half* b, const float* c, float* d, int stride) {
  tile<__half, float, 16, 16, 16>(a, b, c, d, stride);
}
extern "C" __global__ void tile_half_wide(const __half* a, const __half* b, const float* c, float* d, int stride) {
  tile<__half, float, 8, 32, 16>(a, b, c, d, stride);
}
extern "C" __global__ void tile_half_sums(const __half* a, const __half* b, const __half* c, __half* d, int stride) {
  tile<__half, __half, 32, 8, 16>(a, b, c, d, stride);
}
extern "C" __global__ void tile_bfloat(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* c, float* d,
                                       int stride) {
  tile<__nv_bfloat16, float, 16, 16, 16>(a, b, c, d, stride);
}
extern "C" __global__ void tile_bytes(const signed char* a, const signed char* b, const int* c, int* d, int stride) {
  tile<signed char, int, 32, 8, 16>(a, b, c, d, stride);
}
extern "C" __global__ void tile_double(const double* a, const double* b, const double* c, double* d, int stride) {
  tile<double, double, 8, 8, 4>(a, b, c, d, stride);
}

// Half of the block writes rounds of values, the other half sums them up; two barriers hand the
// buffer to and fro.
extern "C" __global__ void hand_over(int rounds, int* sums) {
  __shared__ int buffer[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
  if (threadIdx.x == 0) {
    init(&full, blockDim.x);
    init(&empty, blockDim.x);
  }
  __syncthreads();
  const bool writes = threadIdx.x < 64;
  const int i = threadIdx.x % 64;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    if (writes) {
      buffer[i] = round * 100 + i + blockIdx.x;
      (void)full.arrive();
      empty.arrive_and_wait();
    } else {
      full.arrive_and_wait();
      sum += buffer[63 - i];
      (void)empty.arrive();
    }
  }
  if (!writes) sums[blockIdx.x * 64 + i] = sum;
}

// Threads that leave do not keep the others waiting.
extern "C" __global__ void some_leave(int* out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> all;
  if (threadIdx.x == 0) init(&all, blockDim.x);
  __syncthreads();
  if (threadIdx.x % 2 == 1) {
    all.arrive_and_drop();
    return;
  }
  all.arrive_and_wait();
  all.arrive_and_wait();
  out[threadIdx.x / 2] = threadIdx.x;
}

// Copies that arrive at a barrier when they are done.
extern "C" __global__ void copied(const int* from, int* to, int count) {
  extern __shared__ int staged[];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> done;
  if (threadIdx.x == 0) init(&done, blockDim.x);
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    cuda::memcpy_async(staged + i, from + i, cuda::aligned_size_t<4>(4), done);
  done.arrive_and_wait();
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = staged[count - 1 - i];
}

// Block 0 writes numbered lines, block 1 reads them: data and the number beside it are one vector.
extern "C" __global__ void lines(volatile uint4* line, int rounds, unsigned* wrong) {
  const unsigned i = threadIdx.x;
  for (unsigned round = 1; round <= unsigned(rounds); ++round) {
    uint4 value;
    uint4* const at = const_cast<uint4*>(line) + i;
    if (blockIdx.x == 0) {
      asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%1,%2};" ::"l"(at), "r"(round * 7), "r"(round));
      continue;
    }
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(at));
    if (value.x != value.y * 7 || value.z != value.x || value.w != value.y) atomicAdd(wrong, 1);
  }
}
