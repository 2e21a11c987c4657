// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A plain CUDA runtime program: allocate, copy, stream, event, memset, symbol, launch, a graph that is
// changed in place, managed memory. Knows nothing of the emulator; right results are exit 0.

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

// A graph writes a variable and reads it back; then the same graph with another source.
int change_a_graph(cudaStream_t stream) {
  int seven = 7;
  int eight = 8;
  int seen = 0;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t to;
  cudaGraphNode_t from;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, offset, &seven, sizeof(int), 0,
                                      cudaMemcpyHostToDevice));
  MUST(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, &seen, offset, sizeof(int), 0,
                                        cudaMemcpyDeviceToHost));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  if (seen != 7) return 4;
  MUST(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, to, offset, &eight, sizeof(int), 0,
                                                cudaMemcpyHostToDevice));
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  return seen == 8 ? 0 : 5;
}

int share_memory() {
  int* shared = nullptr;
  MUST(cudaMallocManaged(&shared, sizeof(int)));
  *shared = 1;
  cudaPointerAttributes about;
  MUST(cudaPointerGetAttributes(&about, shared));
  MUST(cudaMemset(shared, 0, sizeof(int)));
  MUST(cudaDeviceSynchronize());
  if (*shared != 0 || about.type != cudaMemoryTypeManaged) return 6;
  MUST(cudaFree(shared));
#if CUDART_VERSION >= 13000
  cudaMemPool_t pools[2];
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  MUST(cudaMemGetDefaultMemPool(&pools[0], &here, cudaMemAllocationTypePinned));
  MUST(cudaDeviceGetDefaultMemPool(&pools[1], 0));
  if (pools[0] != pools[1]) return 7;
#endif
  return 0;
}

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
  const int changed = change_a_graph(stream);
  const int shared = share_memory();
  if (changed != 0 || shared != 0) return changed + shared;
  return out[count - 1] == 0 && milliseconds >= 0 && properties.major >= 7 ? 0 : 3;
}
