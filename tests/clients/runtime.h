// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program linked to the shared CUDA runtime: the same copies through its calls. C and C++.
#pragma once

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT_CUDA_TRY(call)                                                      \
  do {                                                                             \
    const cudaError_t client_result = (call);                                      \
    if (client_result != cudaSuccess) {                                            \
      fprintf(stderr, "client: %s: %s\n", #call, cudaGetErrorName(client_result)); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

static inline void runtime_expect(const unsigned char* found, const unsigned char* wanted,
                                  size_t size, const char* variant) {
  if (memcmp(found, wanted, size) == 0) return;
  fprintf(stderr, "client: %s: wrong bytes\n", variant);
  exit(1);
}

static inline void runtime_round_trips(unsigned char* device, const unsigned char* sent,
                                       unsigned char* got, unsigned char* pinned, size_t size,
                                       cudaStream_t stream) {
  CLIENT_CUDA_TRY(cudaMemcpy(device, sent, size, cudaMemcpyHostToDevice));
  CLIENT_CUDA_TRY(cudaMemcpy(got, device, size, cudaMemcpyDeviceToHost));
  runtime_expect(got, sent, size, "synchronous");
  for (size_t i = 0; i < size; ++i) pinned[i] = (unsigned char)~sent[i];
  CLIENT_CUDA_TRY(cudaMemcpyAsync(device, pinned, size, cudaMemcpyHostToDevice, stream));
  CLIENT_CUDA_TRY(cudaMemcpyAsync(got, device, size, cudaMemcpyDeviceToHost, stream));
  CLIENT_CUDA_TRY(cudaStreamSynchronize(stream));
  runtime_expect(got, pinned, size, "asynchronous");
  CLIENT_CUDA_TRY(cudaMemcpy(device, sent, size, cudaMemcpyDefault));
  CLIENT_CUDA_TRY(cudaMemcpy(pinned, device, size, cudaMemcpyDefault));
  runtime_expect(pinned, sent, size, "inferred");
}

// Two channels of 16 bits; the extent of a copy counts such elements.
static inline void runtime_array(unsigned char* sent, unsigned char* got) {
  const struct cudaChannelFormatDesc pair = {16, 16, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array = NULL;
  struct cudaMemcpy3DParms out;
  CLIENT_CUDA_TRY(cudaMallocArray(&array, &pair, 100, 20, cudaArrayDefault));
  CLIENT_CUDA_TRY(cudaMemcpy2DToArray(array, 0, 0, sent, 400, 400, 20, cudaMemcpyHostToDevice));
  CLIENT_CUDA_TRY(cudaDeviceSynchronize());
  memset(&out, 0, sizeof out);
  out.srcArray = array;
  out.dstPtr.ptr = got;
  out.dstPtr.pitch = 400;
  out.dstPtr.xsize = 400;
  out.dstPtr.ysize = 20;
  out.extent.width = 100;
  out.extent.height = 20;
  out.extent.depth = 1;
  out.kind = cudaMemcpyDeviceToHost;
  CLIENT_CUDA_TRY(cudaMemcpy3D(&out));
  runtime_expect(got, sent, 400 * 20, "array");
  CLIENT_CUDA_TRY(cudaFreeArray(array));
}

// The structure a program was compiled with is the one its runtime fills.
static inline void runtime_properties(void) {
  struct cudaDeviceProp properties;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  int processors = 0;
  int pools = 0;
  int registers = 0;
  memset(&properties, 0xff, sizeof properties);
  CLIENT_CUDA_TRY(cudaGetDeviceProperties(&properties, 0));
  CLIENT_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
  CLIENT_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  CLIENT_CUDA_TRY(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0));
  CLIENT_CUDA_TRY(cudaDeviceGetAttribute(&registers, cudaDevAttrHostRegisterSupported, 0));
  const int right = strlen(properties.name) > 0 && properties.totalGlobalMem == total_bytes &&
                    properties.major == 9 && properties.minor == 0 &&
                    properties.multiProcessorCount == processors && properties.warpSize == 32 &&
                    properties.unifiedAddressing == 1 && properties.cooperativeLaunch >= 0 &&
                    properties.memoryPoolsSupported == pools &&
                    properties.hostRegisterSupported == registers &&
                    properties.unifiedFunctionPointers == 0;
  if (right) return;
  fprintf(stderr, "client: cudaGetDeviceProperties: not what the device says of itself\n");
  exit(1);
}

static inline int run_runtime(void) {
  static const size_t kSizes[] = {1, 4097, 1 << 20, (2 << 20) + 77};
  const size_t size_max = kSizes[3];
  void* device = NULL;
  void* pinned = NULL;
  cudaStream_t stream = NULL;
  CLIENT_CUDA_TRY(cudaSetDevice(0));
  runtime_properties();
  CLIENT_CUDA_TRY(cudaMalloc(&device, size_max));
  CLIENT_CUDA_TRY(cudaMallocHost(&pinned, size_max));
  CLIENT_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  unsigned char* const sent = (unsigned char*)malloc(size_max);
  unsigned char* const got = (unsigned char*)malloc(size_max);
  if (sent == NULL || got == NULL) return 1;
  for (size_t i = 0; i < size_max; ++i) sent[i] = (unsigned char)(i * 31 + (i >> 12));
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    runtime_round_trips((unsigned char*)device, sent, got, (unsigned char*)pinned, kSizes[i],
                        stream);
  }
  CLIENT_CUDA_TRY(cudaMemcpy2D(device, 512, sent, 300, 300, 64, cudaMemcpyHostToDevice));
  CLIENT_CUDA_TRY(cudaMemcpy2D(got, 300, device, 512, 300, 64, cudaMemcpyDeviceToHost));
  runtime_expect(got, sent, 300 * 64, "rows");
  runtime_array(sent, got);
  CLIENT_CUDA_TRY(cudaMemsetAsync(device, 0x5a, 4096, stream));
  CLIENT_CUDA_TRY(cudaMemcpyAsync(got, device, 4096, cudaMemcpyDeviceToHost, stream));
  CLIENT_CUDA_TRY(cudaStreamSynchronize(stream));
  memset(sent, 0x5a, 4096);
  runtime_expect(got, sent, 4096, "filled");
  free(sent);
  free(got);
  CLIENT_CUDA_TRY(cudaStreamDestroy(stream));
  CLIENT_CUDA_TRY(cudaFreeHost(pinned));
  CLIENT_CUDA_TRY(cudaFree(device));
  puts("ok");
  return 0;
}
