// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include "kernels/emulated.h"
#include "support/fail.h"
#include "support/gpu.h"

// What nvcc makes of a __global__ function on the host side, or kernels/launch_stubs.cc in its
// place: a symbol of the kernel's name, whose address stands for the kernel.
#define SEALANE_DECLARE_STUB(type, name) extern "C" void name(examples::type);
SEALANE_EXAMPLE_KERNELS(SEALANE_DECLARE_STUB)
#undef SEALANE_DECLARE_STUB

namespace examples::gpu {

namespace {

const void* stub_of(KernelId kernel) {
#define SEALANE_STUB(type, name) reinterpret_cast<const void*>(&::name),
  static const void* const kStubs[] = {SEALANE_EXAMPLE_KERNELS(SEALANE_STUB)};
#undef SEALANE_STUB
  return kStubs[static_cast<size_t>(kernel)];
}

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  fail("%s: %s (%d)", call, cudaGetErrorName(error), static_cast<int>(error));
}

}  // namespace

#define SEALANE_TRY(call, ...) check(call(__VA_ARGS__), #call)

const char* api_name() { return "runtime"; }

int device_count() {
  int count = 0;
  SEALANE_TRY(cudaGetDeviceCount, &count);
  return count;
}

void init(int device) {
  SEALANE_TRY(cudaSetDevice, device);
  register_emulated_kernels();
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  SEALANE_TRY(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  return stream;
}

void destroy(Stream stream) { SEALANE_TRY(cudaStreamDestroy, stream); }

Event make_event() {
  cudaEvent_t event = nullptr;
  SEALANE_TRY(cudaEventCreateWithFlags, &event, cudaEventDefault);
  return event;
}

void destroy(Event event) { SEALANE_TRY(cudaEventDestroy, event); }

void copy_in(void* device, const void* host, size_t bytes, Stream stream) {
  SEALANE_TRY(cudaMemcpyAsync, device, host, bytes, cudaMemcpyHostToDevice, stream);
}

void copy_out(void* host, const void* device, size_t bytes, Stream stream) {
  SEALANE_TRY(cudaMemcpyAsync, host, device, bytes, cudaMemcpyDeviceToHost, stream);
}

void copy_within(void* to, const void* from, size_t bytes, Stream stream) {
  SEALANE_TRY(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

void fill_zero(void* device, size_t bytes, Stream stream) {
  SEALANE_TRY(cudaMemsetAsync, device, 0, bytes, stream);
}

void record(Event event, Stream stream) { SEALANE_TRY(cudaEventRecord, event, stream); }
void wait(Stream stream, Event event) { SEALANE_TRY(cudaStreamWaitEvent, stream, event, 0); }
void synchronize(Stream stream) { SEALANE_TRY(cudaStreamSynchronize, stream); }
void synchronize(Event event) { SEALANE_TRY(cudaEventSynchronize, event); }

double seconds_between(Event start, Event end) {
  float milliseconds = 0;
  SEALANE_TRY(cudaEventElapsedTime, &milliseconds, start, end);
  return milliseconds / 1e3;
}

void start_profile() { SEALANE_TRY(cudaProfilerStart); }
void stop_profile() { SEALANE_TRY(cudaProfilerStop); }

void launch(KernelId kernel, size_t items, const void* parameters, Stream stream) {
  void* arguments[] = {const_cast<void*>(parameters)};
  const dim3 grid(static_cast<unsigned>((items + kBlockThreads - 1) / kBlockThreads));
  SEALANE_TRY(cudaLaunchKernel, stub_of(kernel), grid, dim3(kBlockThreads), arguments, 0, stream);
}

void begin_capture(Stream stream) {
  SEALANE_TRY(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
}

Graph end_capture(Stream stream) {
  cudaGraph_t captured = nullptr;
  SEALANE_TRY(cudaStreamEndCapture, stream, &captured);
  cudaGraphExec_t graph = nullptr;
  SEALANE_TRY(cudaGraphInstantiate, &graph, captured, 0);
  SEALANE_TRY(cudaGraphDestroy, captured);
  return graph;
}

void launch(Graph graph, Stream stream) { SEALANE_TRY(cudaGraphLaunch, graph, stream); }
void destroy(Graph graph) { SEALANE_TRY(cudaGraphExecDestroy, graph); }

void* allocate(size_t bytes) {
  void* memory = nullptr;
  SEALANE_TRY(cudaMalloc, &memory, bytes);
  return memory;
}

void release(void* device) noexcept { cudaFree(device); }

void* allocate_pinned(size_t bytes) {
  void* memory = nullptr;
  SEALANE_TRY(cudaMallocHost, &memory, bytes);
  return memory;
}

void release_pinned(void* host) noexcept { cudaFreeHost(host); }

}  // namespace examples::gpu
