// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory pools and stream-ordered allocation. Memory is there when the call returns; a free takes
// effect when the stream gets to it. In a capture both become nodes of the graph.

#include "emu/driver/api.h"
#include "emu/driver/graph_memory.h"

using namespace sealane::emu;

namespace {

bool captures(Driver& d, const ResolvedStream& stream) {
  const std::lock_guard lock(d.capture_mutex);
  return stream.object && stream.object->capture;
}

CUresult allocate_from(Driver& d, ResolvedStream& stream, CUmemoryPool handle, CUdeviceptr* out,
                       size_t bytes) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto pool = d.pools.find(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *out = 0;
    return CUDA_SUCCESS;
  }
  if (captures(d, stream)) {
    auto memory = GraphMemory::allocate(*pool->gpu, bytes);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = memory->address();
    return submit(d, stream, AllocOperation{std::move(memory)}, false);
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
  return address == 0 ? CUDA_SUCCESS : submit(d, stream, FreeOperation{address}, false);
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
  return guarded([&](Driver& d) {
    const auto pool = d.pools.find(handle);
    if (!pool || (map == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
    uint32_t open = pool->peers.load();
    for (size_t i = 0; i < count; ++i) {
      const bool device = map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE;
      if (!device || d.gpu_at(map[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      const int ordinal = map[i].location.id;
      const bool none = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
      if (ordinal == pool->gpu->ordinal) {
        if (none) return CUDA_ERROR_INVALID_VALUE;  // its own device keeps access
        continue;
      }
      if (config()->cc) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
      const uint32_t bit = uint32_t{1} << ordinal;
      open = none ? open & ~bit : open | bit;
    }
    pool->peers = open;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return with_pool(handle, flags, [&](PoolObject& pool) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = pool.open_to(location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
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
