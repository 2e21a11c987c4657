// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory and pools.

#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

CUdeviceptr* address_of(void** memory) { return reinterpret_cast<CUdeviceptr*>(memory); }

CUresult describe(const Calls& calls, cudaPointerAttributes& out, const void* memory) {
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_IS_MANAGED};
  unsigned managed = 0;
  unsigned type = 0;
  int ordinal = -2;
  CUdeviceptr device = 0;
  void* host = nullptr;
  void* data[] = {&type, &ordinal, &device, &host, &managed};
  const CUresult result = calls.cuPointerGetAttributes(5, which, data, address(memory));
  out = {};
  out.type = static_cast<cudaMemoryType>(type);  // the runtime's values are the driver's
  if (managed != 0) out.type = cudaMemoryTypeManaged;
  out.device = ordinal;
  out.devicePointer = reinterpret_cast<void*>(device);
  out.hostPointer = type == 0 ? const_cast<void*>(memory) : host;
  return result;
}

}  // namespace

#define CALL(streams, name, ...) \
  with_context(streams, [&](const Calls& calls) { return calls.name(__VA_ARGS__); })

EMU_RUNTIME cudaMalloc(void** memory, size_t bytes) {
  if (memory != nullptr && bytes == 0) {
    *memory = nullptr;
    return cudaSuccess;
  }
  return CALL(Streams::legacy, cuMemAlloc, address_of(memory), bytes);
}

EMU_RUNTIME cudaMallocPitch(void** memory, size_t* pitch, size_t width, size_t height) {
  return CALL(Streams::legacy, cuMemAllocPitch, address_of(memory), pitch, width, height, 4);
}

EMU_RUNTIME cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return note(cudaErrorInvalidValue);
  *memory = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}

EMU_RUNTIME cudaFree(void* memory) { return CALL(Streams::legacy, cuMemFree, address(memory)); }

EMU_RUNTIME cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  if (memory != nullptr && bytes == 0) {
    *memory = nullptr;
    return cudaSuccess;
  }
  return CALL(Streams::legacy, cuMemHostAlloc, memory, bytes, flags);
}

EMU_RUNTIME cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

EMU_RUNTIME cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  return CALL(Streams::legacy, cuMemFreeHost, memory);
}

EMU_RUNTIME cudaHostGetDevicePointer(void** device_memory, void* memory, unsigned flags) {
  return CALL(Streams::legacy, cuMemHostGetDevicePointer, address_of(device_memory), memory, flags);
}

EMU_RUNTIME cudaHostGetFlags(unsigned* flags, void* memory) {
  return CALL(Streams::legacy, cuMemHostGetFlags, flags, memory);
}

EMU_RUNTIME cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  return CALL(Streams::legacy, cuMemHostRegister, memory, bytes, flags);
}

EMU_RUNTIME cudaHostUnregister(void* memory) {
  return CALL(Streams::legacy, cuMemHostUnregister, memory);
}

EMU_RUNTIME cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return CALL(Streams::legacy, cuMemGetInfo, free_bytes, total_bytes);
}

EMU_RUNTIME cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return attributes != nullptr ? describe(calls, *attributes, memory) : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_RUNTIME_TWINS(cudaMallocAsync, _ptsz, (void** memory, size_t bytes, cudaStream_t stream),
                  CALL(mode, cuMemAllocAsync, address_of(memory), bytes, stream))
EMU_RUNTIME_TWINS(cudaMallocFromPoolAsync, _ptsz,
                  (void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                  CALL(mode, cuMemAllocFromPoolAsync, address_of(memory), bytes, pool, stream))
EMU_RUNTIME_TWINS(cudaFreeAsync, _ptsz, (void* memory, cudaStream_t stream),
                  CALL(mode, cuMemFreeAsync, address(memory), stream))

EMU_RUNTIME cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return CALL(Streams::legacy, cuMemPoolCreate, pool,
              reinterpret_cast<const CUmemPoolProps*>(props));  // same layout
}

EMU_RUNTIME cudaMemPoolDestroy(cudaMemPool_t pool) {
  return CALL(Streams::legacy, cuMemPoolDestroy, pool);
}

EMU_RUNTIME cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  return CALL(Streams::legacy, cuMemPoolTrimTo, pool, bytes_to_keep);
}

EMU_RUNTIME cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return CALL(Streams::legacy, cuMemPoolSetAttribute, pool,
              static_cast<CUmemPool_attribute>(attribute), value);
}

EMU_RUNTIME cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return CALL(Streams::legacy, cuMemPoolGetAttribute, pool,
              static_cast<CUmemPool_attribute>(attribute), value);
}
#undef CALL
