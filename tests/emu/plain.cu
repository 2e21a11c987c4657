// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A plain CUDA runtime program: allocate, copy, stream, event, memset, symbol, launch. Knows nothing of
// the emulator; right results are exit 0.

#include <cstdio>
#include <vector>

__device__ int offset;

__global__ void scale(float* values, float by, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * by + offset;
}

#define MUST(call)                                             \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      return 1;                                                \
    }                                                          \
  } while (false)

int main() {
  const int count = 100000;
  const int five = 5;
  std::vector<float> in(count, 2.0f);
  std::vector<float> out(count);
  float* device = nullptr;
  cudaStream_t stream;
  cudaEvent_t before;
  cudaEvent_t after;
  MUST(cudaMalloc(&device, count * sizeof(float)));
  MUST(cudaStreamCreate(&stream));
  MUST(cudaEventCreate(&before));
  MUST(cudaEventCreate(&after));
  MUST(cudaMemcpyToSymbol(offset, &five, sizeof five));
  MUST(cudaMemcpyAsync(device, in.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream));
  MUST(cudaEventRecord(before, stream));
  scale<<<(count + 255) / 256, 256, 0, stream>>>(device, 3.0f, count);
  MUST(cudaGetLastError());
  MUST(cudaEventRecord(after, stream));
  MUST(cudaMemcpyAsync(out.data(), device, count * sizeof(float), cudaMemcpyDefault, stream));
  MUST(cudaStreamSynchronize(stream));
  for (const float value : out) {
    if (value != 11.0f) return 2;
  }
  float milliseconds = -1;
  MUST(cudaEventElapsedTime(&milliseconds, before, after));
  MUST(cudaMemset(device, 0, count * sizeof(float)));
  MUST(cudaMemcpy(out.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
  cudaDeviceProp properties;
  MUST(cudaGetDeviceProperties(&properties, 0));
  return out[count - 1] == 0 && milliseconds >= 0 && properties.major >= 7 ? 0 : 3;
}
