// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Devices.

#include <cstring>

#include "cuda_abi/cuda_profiler_api.h"
#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

int attribute(const Calls& calls, CUdevice_attribute which, int device) {
  int value = 0;
  calls.cuDeviceGetAttribute(&value, which, device);
  return value;
}

}  // namespace

CUresult sealane::emu::runtime::fill_properties(const Calls& calls, cudaDeviceProp& p, int device) {
  p = {};
  const CUresult named = calls.cuDeviceGetName(p.name, sizeof p.name, device);
  if (named != CUDA_SUCCESS) return named;
  calls.cuDeviceGetUuid(&p.uuid, device);
  calls.cuDeviceTotalMem(&p.totalGlobalMem, device);
  const auto get = [&](CUdevice_attribute which) { return attribute(calls, which, device); };
  const auto size = [&](CUdevice_attribute which) { return static_cast<size_t>(get(which)); };
  p.sharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p.warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.memPitch = size(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p.maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p.maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p.maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p.maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p.maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  p.totalConstMem = size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p.minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p.textureAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p.texturePitchAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  p.multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  p.concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  p.ECCEnabled = get(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  p.pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  p.pciDeviceID = get(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  p.asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p.unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  p.memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p.l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p.maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p.streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  p.sharedMemPerMultiprocessor = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p.cooperativeLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  p.sharedMemPerBlockOptin = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  p.hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  p.managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  p.concurrentManagedAccess = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  p.memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  return CUDA_SUCCESS;
}

EMU_RUNTIME cudaDriverGetVersion(int* version) {
  return with_driver([&](const Calls& calls) { return calls.cuDriverGetVersion(version); });
}

EMU_RUNTIME cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

namespace {

// Programs built with per-thread default streams mean the twins unless they say otherwise.
cudaError_t entry_point(Streams mode, const char* symbol, void** function, unsigned version,
                        unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (flags == CU_GET_PROC_ADDRESS_DEFAULT && mode == Streams::per_thread) {
    flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  }
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = find_call(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return note(result);
}

}  // namespace

EMU_RUNTIME_TWINS(cudaGetDriverEntryPointByVersion, _ptsz,
                  (const char* symbol, void** function, unsigned version, unsigned long long flags,
                   cudaDriverEntryPointQueryResult* status),
                  entry_point(mode, symbol, function, version, flags, status))
EMU_RUNTIME_TWINS(cudaGetDriverEntryPoint, _ptsz,
                  (const char* symbol, void** function, unsigned long long flags,
                   cudaDriverEntryPointQueryResult* status),
                  entry_point(mode, symbol, function, CUDART_VERSION, flags, status))

EMU_RUNTIME cudaGetDeviceCount(int* count) {
  return with_driver([&](const Calls& calls) { return calls.cuDeviceGetCount(count); });
}

EMU_RUNTIME cudaGetDevice(int* device) {
  return with_driver([&](const Calls& calls) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // A context the program itself made current decides.
    CUdevice current = 0;
    *device = calls.cuCtxGetDevice(&current) == CUDA_SUCCESS ? current : device_of_this_thread();
    return CUDA_SUCCESS;
  });
}

EMU_RUNTIME cudaSetDevice(int device) {
  const cudaError_t known = with_driver([&](const Calls& calls) {
    CUdevice found = 0;
    return calls.cuDeviceGet(&found, device);
  });
  if (known != cudaSuccess) return known;
  set_device_of_this_thread(device);
  return with_driver([&](const Calls& calls) {
    const CUresult cleared = calls.cuCtxSetCurrent(nullptr);
    const Calls* unused = nullptr;
    return cleared != CUDA_SUCCESS ? static_cast<cudaError_t>(cleared) : enter(unused);
  });
}

EMU_RUNTIME cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

EMU_RUNTIME cudaGetDeviceFlags(unsigned* flags) {
  return with_driver([&](const Calls& calls) {
    int active = 0;
    return calls.cuDevicePrimaryCtxGetState(device_of_this_thread(), flags, &active);
  });
}

EMU_RUNTIME cudaSetDeviceFlags(unsigned flags) {
  return with_driver([&](const Calls& calls) {
    return calls.cuDevicePrimaryCtxSetFlags(device_of_this_thread(), flags);
  });
}

EMU_RUNTIME cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return with_driver([&](const Calls& calls) {
    return calls.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device);
  });
}

EMU_RUNTIME cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return with_driver(
      [&](const Calls& calls) { return calls.cuDeviceGetPCIBusId(id, length, device); });
}

EMU_RUNTIME cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return with_driver([&](const Calls& calls) { return calls.cuDeviceGetByPCIBusId(device, id); });
}

EMU_RUNTIME cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuCtxGetLimit(value, static_cast<CUlimit>(limit));
  });
}

EMU_RUNTIME cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuCtxSetLimit(static_cast<CUlimit>(limit), value);
  });
}

EMU_RUNTIME cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config));
  });
}

EMU_RUNTIME cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config));
  });
}

EMU_RUNTIME cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuCtxGetStreamPriorityRange(least, greatest);
  });
}

EMU_RUNTIME cudaDeviceSynchronize() {
  return with_context(Streams::legacy, [](const Calls& calls) { return calls.cuCtxSynchronize(); });
}

EMU_RUNTIME cudaDeviceReset() {
  return with_driver([](const Calls& calls) {
    const int device = device_of_this_thread();
    forget_contexts(device);
    calls.cuCtxSetCurrent(nullptr);
    return calls.cuDevicePrimaryCtxReset(device);
  });
}

EMU_RUNTIME cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return with_driver(
      [&](const Calls& calls) { return calls.cuDeviceCanAccessPeer(can, device, peer); });
}

EMU_RUNTIME cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUcontext other = nullptr;
    const CUresult found = primary_context(calls, peer, other);
    return found == CUDA_SUCCESS ? calls.cuCtxEnablePeerAccess(other, flags) : found;
  });
}

EMU_RUNTIME cudaDeviceDisablePeerAccess(int peer) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUcontext other = nullptr;
    const CUresult found = primary_context(calls, peer, other);
    return found == CUDA_SUCCESS ? calls.cuCtxDisablePeerAccess(other) : found;
  });
}

EMU_RUNTIME cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return with_driver(
      [&](const Calls& calls) { return calls.cuDeviceGetDefaultMemPool(pool, device); });
}

EMU_RUNTIME cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return with_driver([&](const Calls& calls) { return calls.cuDeviceGetMemPool(pool, device); });
}

EMU_RUNTIME cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return with_driver([&](const Calls& calls) { return calls.cuDeviceSetMemPool(device, pool); });
}

EMU_RUNTIME cudaProfilerStart() {
  return with_driver([](const Calls& calls) { return calls.cuProfilerStart(); });
}

EMU_RUNTIME cudaProfilerStop() {
  return with_driver([](const Calls& calls) { return calls.cuProfilerStop(); });
}
