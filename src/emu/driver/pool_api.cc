// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory pools and stream-ordered allocation. Memory is there when the call returns; a free takes
// effect when the stream gets to it.

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

CUresult allocate_from(Driver& d, ResolvedStream& stream, CUmemoryPool handle, CUdeviceptr* out,
                       size_t bytes) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto pool = d.pools.find(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (stream.object) {
    const std::lock_guard lock(d.capture_mutex);
    if (stream.object->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (bytes == 0) {
    *out = 0;
    return CUDA_SUCCESS;
  }
  const auto address = pool->gpu->memory.allocate(bytes, stream.context->id(), handle);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t used = pool->used += bytes;
  for (uint64_t high = pool->used_high; high < used;) {
    if (pool->used_high.compare_exchange_weak(high, used)) break;
  }
  *out = *address;
  return CUDA_SUCCESS;
}

CUresult free_later(Driver& d, ResolvedStream& stream, CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Gpu* gpu = d.gpu_of(address);
  const auto block = gpu != nullptr ? gpu->memory.retire(address) : std::nullopt;
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  Command command;
  command.even_if_failed = true;
  command.run = [gpu, freed = *block,
                 pool = d.pools.find(static_cast<CUmemoryPool>(const_cast<void*>(block->pool)))] {
    if (pool) pool->used -= freed.bytes;
    gpu->memory.recycle(freed);
    return CUDA_SUCCESS;
  };
  stream.context->submit(stream.stream, std::move(command));
  return CUDA_SUCCESS;
}

// work(PoolObject&)
template <typename Work>
CUresult with_pool(CUmemoryPool handle, const void* needed, Work&& work) {
  return guarded([&](Driver& d) {
    const auto pool = d.pools.find(handle);
    return pool && needed != nullptr ? work(*pool) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult device_pool(CUmemoryPool* out, CUdevice device, std::vector<CUmemoryPool> Driver::*which) {
  return guarded([&](Driver& d) {
    if (d.gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(d.primary_mutex);
    *out = (d.*which)[static_cast<size_t>(device)];
    return CUDA_SUCCESS;
  });
}

CUmemoryPool current_pool(Driver& d, const Gpu& gpu) {
  const std::lock_guard lock(d.primary_mutex);
  return d.current_pools[static_cast<size_t>(gpu.ordinal)];
}

}  // namespace

EMU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return device_pool(pool, device, &Driver::default_pools);
}

EMU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return device_pool(pool, device, &Driver::current_pools);
}

EMU_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  return guarded([&](Driver& d) {
    if (d.gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const auto pool = d.pools.find(handle);
    if (!pool || pool->gpu->ordinal != device) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(d.primary_mutex);
    d.current_pools[static_cast<size_t>(device)] = handle;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  return guarded([&](Driver& d) {
    if (out == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    Gpu* gpu = d.gpu_at(props->location.id);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto pool = std::make_shared<PoolObject>();
    pool->gpu = gpu;
    *out = d.pools.add(std::move(pool));
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemPoolDestroy(CUmemoryPool handle) {
  return guarded([&](Driver& d) {
    const auto pool = d.pools.find(handle);
    if (!pool || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    d.pools.remove(handle);
    const std::lock_guard lock(d.primary_mutex);
    auto& current = d.current_pools[static_cast<size_t>(pool->gpu->ordinal)];
    if (current == handle) current = d.default_pools[static_cast<size_t>(pool->gpu->ordinal)];
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return with_pool(handle, handle, [](PoolObject&) { return CUDA_SUCCESS; });  // nothing is hoarded
}

EMU_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, value, [&](PoolObject& pool) {
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool.reuse[attribute - 1] = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool.threshold = *static_cast<cuuint64_t*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
        pool.used_high = pool.used.load();
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

EMU_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, value, [&](PoolObject& pool) {
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *static_cast<int*>(value) = pool.reuse[attribute - 1];
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *static_cast<cuuint64_t*>(value) = pool.threshold;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *static_cast<cuuint64_t*>(value) = pool.used;
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *static_cast<cuuint64_t*>(value) = pool.used_high;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

EMU_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  return with_pool(handle, map, [&](PoolObject& pool) {
    for (size_t i = 0; i < count; ++i) {
      if (map[i].location.id != pool.gpu->ordinal) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return with_pool(handle, flags, [&](PoolObject& pool) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool own = location->id == pool.gpu->ordinal;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

EMU_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
          on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
            return allocate_from(d, s, current_pool(d, s.context->gpu()), address, bytes);
          }))

EMU_TWINS(cuMemAllocFromPoolAsync, _ptsz,
          (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
          on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
            return allocate_from(d, s, pool, address, bytes);
          }))

EMU_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
          on_stream(stream, mode,
                    [&](Driver& d, ResolvedStream& s) { return free_later(d, s, address); }))
