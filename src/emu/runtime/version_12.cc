// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is CUDA 12's alone: its cudaDeviceProp under a new symbol, and a batch copy that has a place
// for the index of what failed.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emu/runtime/runtime.h"

#undef cudaGetDeviceProperties

using namespace sealane::emu::runtime;

static_assert(sizeof(cudaDeviceProp) == 1032);

namespace {

CUresult fill(const Calls& calls, cudaDeviceProp& p, int device) {
  const CUresult filled = fill_properties(calls, p, device);
  if (filled != CUDA_SUCCESS) return filled;
  const auto get = [&](CUdevice_attribute which, int& value) {
    calls.cuDeviceGetAttribute(&value, which, device);
  };
  get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, p.clockRate);
  get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, p.memoryClockRate);
  get(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, p.computeMode);
  p.deviceOverlap = p.asyncEngineCount > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace

EMU_RUNTIME cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& calls) {
    return properties != nullptr ? fill(calls, *properties, device) : CUDA_ERROR_INVALID_VALUE;
  });
}

// The name without a number is CUDA 11's, whose structure ends earlier.
EMU_RUNTIME cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& calls) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cudaDeviceProp whole;
    const CUresult filled = fill(calls, whole, device);
    if (filled != CUDA_SUCCESS) return filled;
    std::memcpy(static_cast<void*>(properties), &whole,
                offsetof(cudaDeviceProp, hostRegisterSupported));
    return CUDA_SUCCESS;
  });
}

namespace {

using BatchWithIndex = CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                                size_t*, size_t, size_t*, CUstream);

// CUDA 12.8's variant of the driver's call.
BatchWithIndex* find_batch(unsigned long long flags) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  find_call("cuMemcpyBatchAsync", &found, 12080, flags, &status);
  return reinterpret_cast<BatchWithIndex*>(found);
}

BatchWithIndex* batch_of(Streams mode) {
  static BatchWithIndex* const legacy = find_batch(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  static BatchWithIndex* const per_thread =
      find_batch(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return mode == Streams::legacy ? legacy : per_thread;
}

}  // namespace

EMU_RUNTIME_TWINS(cudaMemcpyBatchAsync, _ptsz,
                  (void** to, void** from, size_t* bytes, size_t count,
                   cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                   size_t* failed, cudaStream_t stream),
                  with_context(mode, [&](const Calls&) {
                    BatchWithIndex* const batch = batch_of(mode);
                    if (batch == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
                    return batch(reinterpret_cast<CUdeviceptr*>(to),
                                 reinterpret_cast<CUdeviceptr*>(from), bytes, count,
                                 reinterpret_cast<CUmemcpyAttributes*>(attributes), starts,
                                 attribute_count, failed, stream);
                  }))

EMU_RUNTIME_TWINS(cudaMemcpy3DBatchAsync, _ptsz,
                  (size_t count, cudaMemcpy3DBatchOp* copies, size_t* failed,
                   unsigned long long flags, cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    const CUresult result = c.cuMemcpy3DBatchAsync(
                        count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(copies), flags, stream);
                    // Which one is not told.
                    if (result != CUDA_SUCCESS && failed != nullptr) *failed = SIZE_MAX;
                    return result;
                  }))

// Names from before CUDA 4, when a context belonged to a thread.
EMU_RUNTIME cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
EMU_RUNTIME cudaThreadExit() { return cudaDeviceReset(); }
EMU_RUNTIME cudaThreadGetLimit(size_t* value, cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
EMU_RUNTIME cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
EMU_RUNTIME cudaThreadGetCacheConfig(cudaFuncCache* config) {
  return cudaDeviceGetCacheConfig(config);
}
EMU_RUNTIME cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}
