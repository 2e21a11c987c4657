// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda.h>
#include <cudaProfiler.h>

#include "kernels/emulated.h"
#include "kernels/image.h"
#include "support/fail.h"
#include "support/gpu.h"

namespace examples::gpu {

namespace {

CUfunction functions[kKernelCount];  // written by init() only

void check(CUresult error, const char* call) {
  if (error == CUDA_SUCCESS) return;
  const char* name = "unknown error";
  cuGetErrorName(error, &name);
  fail("%s: %s (%d)", call, name, static_cast<int>(error));
}

CUdeviceptr address_of(const void* device) { return reinterpret_cast<CUdeviceptr>(device); }

}  // namespace

#define SEALANE_TRY(call, ...) check(call(__VA_ARGS__), #call)

const char* api_name() { return "driver"; }

int device_count() {
  SEALANE_TRY(cuInit, 0);
  int count = 0;
  SEALANE_TRY(cuDeviceGetCount, &count);
  return count;
}

void init(int number) {
  SEALANE_TRY(cuInit, 0);
  CUdevice device = 0;
  SEALANE_TRY(cuDeviceGet, &device, number);
  CUcontext context = nullptr;
  SEALANE_TRY(cuDevicePrimaryCtxRetain, &context, device);
  SEALANE_TRY(cuCtxSetCurrent, context);
  register_emulated_kernels();
  CUmodule module = nullptr;
  SEALANE_TRY(cuModuleLoadData, &module, kernel_image());
  for (size_t i = 0; i < kKernelCount; ++i) {
    SEALANE_TRY(cuModuleGetFunction, &functions[i], module, kernel_name(static_cast<KernelId>(i)));
  }
}

Stream make_stream() {
  CUstream stream = nullptr;
  SEALANE_TRY(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

void destroy(Stream stream) { SEALANE_TRY(cuStreamDestroy, stream); }

Event make_event() {
  CUevent event = nullptr;
  SEALANE_TRY(cuEventCreate, &event, CU_EVENT_DEFAULT);
  return event;
}

void destroy(Event event) { SEALANE_TRY(cuEventDestroy, event); }

void copy_in(void* device, const void* host, size_t bytes, Stream stream) {
  SEALANE_TRY(cuMemcpyHtoDAsync, address_of(device), host, bytes, stream);
}

void copy_out(void* host, const void* device, size_t bytes, Stream stream) {
  SEALANE_TRY(cuMemcpyDtoHAsync, host, address_of(device), bytes, stream);
}

void copy_within(void* to, const void* from, size_t bytes, Stream stream) {
  SEALANE_TRY(cuMemcpyDtoDAsync, address_of(to), address_of(from), bytes, stream);
}

void fill_zero(void* device, size_t bytes, Stream stream) {
  SEALANE_TRY(cuMemsetD8Async, address_of(device), 0, bytes, stream);
}

void record(Event event, Stream stream) { SEALANE_TRY(cuEventRecord, event, stream); }
void wait(Stream stream, Event event) { SEALANE_TRY(cuStreamWaitEvent, stream, event, 0); }
void synchronize(Stream stream) { SEALANE_TRY(cuStreamSynchronize, stream); }
void synchronize(Event event) { SEALANE_TRY(cuEventSynchronize, event); }

double seconds_between(Event start, Event end) {
  float milliseconds = 0;
  SEALANE_TRY(cuEventElapsedTime, &milliseconds, start, end);
  return milliseconds / 1e3;
}

void start_profile() { SEALANE_TRY(cuProfilerStart); }
void stop_profile() { SEALANE_TRY(cuProfilerStop); }

void launch(KernelId kernel, size_t items, const void* parameters, Stream stream) {
  void* arguments[] = {const_cast<void*>(parameters)};
  const auto blocks = static_cast<unsigned>((items + kBlockThreads - 1) / kBlockThreads);
  SEALANE_TRY(cuLaunchKernel, functions[static_cast<size_t>(kernel)], blocks, 1, 1, kBlockThreads,
              1, 1, 0, stream, arguments, nullptr);
}

void begin_capture(Stream stream) {
  SEALANE_TRY(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

Graph end_capture(Stream stream) {
  CUgraph captured = nullptr;
  SEALANE_TRY(cuStreamEndCapture, stream, &captured);
  CUgraphExec graph = nullptr;
  SEALANE_TRY(cuGraphInstantiate, &graph, captured, 0);
  SEALANE_TRY(cuGraphDestroy, captured);
  return graph;
}

void launch(Graph graph, Stream stream) { SEALANE_TRY(cuGraphLaunch, graph, stream); }
void destroy(Graph graph) { SEALANE_TRY(cuGraphExecDestroy, graph); }

void* allocate(size_t bytes) {
  CUdeviceptr memory = 0;
  SEALANE_TRY(cuMemAlloc, &memory, bytes);
  return reinterpret_cast<void*>(memory);
}

void release(void* device) noexcept { cuMemFree(address_of(device)); }

void* allocate_pinned(size_t bytes) {
  void* memory = nullptr;
  SEALANE_TRY(cuMemAllocHost, &memory, bytes);
  return memory;
}

void release_pinned(void* host) noexcept { cuMemFreeHost(host); }

}  // namespace examples::gpu
