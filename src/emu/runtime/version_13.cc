// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is CUDA 13's alone.

#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

static_assert(sizeof(cudaDeviceProp) == 1008);

EMU_RUNTIME cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& calls) {
    return properties != nullptr ? fill_properties(calls, *properties, device)
                                 : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_RUNTIME_TWINS(cudaMemcpyBatchAsync, _ptsz,
                  (void* const* to, const void* const* from, const size_t* bytes, size_t count,
                   cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemcpyBatchAsync(
                        reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
                        reinterpret_cast<CUdeviceptr*>(const_cast<const void**>(from)),
                        const_cast<size_t*>(bytes), count,
                        reinterpret_cast<CUmemcpyAttributes*>(attributes), starts, attribute_count,
                        stream);
                  }))

// Pools by place: those of devices are here, the host has none.
namespace {

template <typename Work>
cudaError_t with_device_of(const cudaMemLocation* location, int type, Work&& work) {
  return with_driver([&](const Calls& calls) {
    if (location == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? work(calls, location->id)
                                                         : CUDA_ERROR_NOT_SUPPORTED;
  });
}

}  // namespace

EMU_RUNTIME cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, int type) {
  return with_device_of(location, type, [&](const Calls& calls, int device) {
    return calls.cuDeviceGetDefaultMemPool(pool, device);
  });
}

EMU_RUNTIME cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, int type) {
  return with_device_of(location, type, [&](const Calls& calls, int device) {
    return calls.cuDeviceGetMemPool(pool, device);
  });
}

EMU_RUNTIME cudaMemSetMemPool(cudaMemLocation* location, int type, cudaMemPool_t pool) {
  return with_device_of(location, type, [&](const Calls& calls, int device) {
    return calls.cuDeviceSetMemPool(device, pool);
  });
}

EMU_RUNTIME_TWINS(cudaMemcpy3DBatchAsync, _ptsz,
                  (size_t count, cudaMemcpy3DBatchOp* copies, unsigned long long flags,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemcpy3DBatchAsync(
                        count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(copies), flags, stream);
                  }))
