// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management: addresses reserved, memory created, mapped, opened to devices, handed
// to other processes as file descriptors. Memory of the host is not created this way.

#include <algorithm>

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

using Handle = CUmemGenericAllocationHandle;

CUresult check(Driver& d, const CUmemAllocationProp* prop, Gpu*& gpu) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  gpu = d.gpu_at(prop->location.id);
  return gpu != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// Its room on the GPU goes with the memory.
std::shared_ptr<MappableMemory> counted(Gpu& gpu, std::shared_ptr<MappableMemory> memory) {
  const uint64_t bytes = memory->bytes();
  MappableMemory* const plain = memory.get();
  return {plain, [&gpu, bytes, held = std::move(memory)](MappableMemory*) mutable {
            held.reset();
            gpu.memory.give_back(bytes);
          }};
}

Gpu* gpu_of_machine(Driver& d, int index) {
  for (const auto& gpu : d.gpus) {
    if (gpu->index == index) return gpu.get();
  }
  return nullptr;
}

// work(MappableMemory)
template <typename Work>
CUresult with_memory(Handle handle, Work&& work) {
  return guarded([&](Driver& d) {
    const auto memory = d.mappable.find(handle);
    return memory ? work(d, memory) : CUDA_ERROR_INVALID_VALUE;
  });
}

// Nothing on the device uses a mapping when it goes.
void await_devices(Driver& d) {
  for (const auto& context : d.contexts.all()) context->synchronise();
}

}  // namespace

EMU_API cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                      unsigned option) {
  return guarded([&](Driver& d) {
    if (granularity == nullptr || option > 1) return CUDA_ERROR_INVALID_VALUE;
    // Host memory cannot be made here, but has a granularity: programs ask for it first and take
    // another way when making it fails.
    Gpu* gpu = nullptr;
    const bool host = prop != nullptr && prop->location.type > CU_MEM_LOCATION_TYPE_DEVICE &&
                      prop->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    const CUresult sane = host ? CUDA_SUCCESS : check(d, prop, gpu);
    if (sane == CUDA_SUCCESS) *granularity = VirtualMemory::kGranule;
    return sane;
  });
}

EMU_API cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr hint,
                            unsigned long long flags) {
  return guarded([&](Driver& d) {
    const bool power = (alignment & (alignment - 1)) == 0;
    const bool sane = bytes > 0 && bytes % VirtualMemory::kGranule == 0 && power && flags == 0;
    if (out == nullptr || !sane) return CUDA_ERROR_INVALID_VALUE;
    *out = d.virtual_memory.reserve(bytes, alignment, hint);
    return *out != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

EMU_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return guarded([&](Driver& d) {
    return d.virtual_memory.release(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuMemCreate(Handle* out, size_t bytes, const CUmemAllocationProp* prop,
                    unsigned long long flags) {
  return guarded([&](Driver& d) {
    Gpu* gpu = nullptr;
    const CUresult sane = check(d, prop, gpu);
    if (sane != CUDA_SUCCESS) return sane;
    const bool even = bytes > 0 && bytes % VirtualMemory::kGranule == 0;
    if (out == nullptr || !even || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!gpu->memory.take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    auto memory = MappableMemory::create(bytes, gpu->index);
    if (!memory) {
      gpu->memory.give_back(bytes);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = d.mappable.add(counted(*gpu, std::move(memory)));
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemRelease(Handle handle) {
  return with_memory(handle, [&](Driver& d, const std::shared_ptr<MappableMemory>& memory) {
    if (memory->handles.fetch_sub(1) == 1) d.mappable.remove(handle);
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, Handle handle,
                 unsigned long long flags) {
  return with_memory(handle, [&](Driver& d, const std::shared_ptr<MappableMemory>& memory) {
    const bool mapped = flags == 0 && d.virtual_memory.map(address, bytes, memory, offset);
    return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return guarded([&](Driver& d) {
    await_devices(d);
    return d.virtual_memory.unmap(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* list,
                       size_t count) {
  return guarded([&](Driver& d) {
    const auto mapping = d.virtual_memory.find(address);
    if (!mapping || list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      const CUmemLocation& who = list[i].location;
      const Gpu* gpu = who.type == CU_MEM_LOCATION_TYPE_DEVICE ? d.gpu_at(who.id) : nullptr;
      if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      const bool peer = gpu->index != mapping->memory->gpu();
      if (peer && config()->cc) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
      const bool allowed = list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
      if (!d.virtual_memory.set_access(address, bytes, gpu->ordinal, allowed)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                       CUdeviceptr address) {
  return guarded([&](Driver& d) {
    const auto mapping = d.virtual_memory.find(address);
    if (!mapping || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    const Gpu* gpu = device ? d.gpu_at(location->id) : nullptr;
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool open = (mapping->access >> gpu->ordinal & 1) != 0;
    *flags = open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemRetainAllocationHandle(Handle* out, void* address) {
  return guarded([&](Driver& d) {
    const auto mapping = d.virtual_memory.find(reinterpret_cast<uint64_t>(address));
    if (!mapping || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    mapping->memory->handles.fetch_add(1);
    *out = d.mappable.add(mapping->memory);
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, Handle handle) {
  return with_memory(handle, [&](Driver& d, const std::shared_ptr<MappableMemory>& memory) {
    const Gpu* gpu = gpu_of_machine(d, memory->gpu());
    if (prop == nullptr || gpu == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *prop = {};
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop->location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu->ordinal};
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemExportToShareableHandle(void* out, Handle handle, CUmemAllocationHandleType type,
                                     unsigned long long flags) {
  return with_memory(handle, [&](Driver&, const std::shared_ptr<MappableMemory>& memory) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int descriptor = memory->duplicate();
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(out) = descriptor;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemImportFromShareableHandle(Handle* out, void* shared, CUmemAllocationHandleType type) {
  return guarded([&](Driver& d) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    auto memory = MappableMemory::open(static_cast<int>(reinterpret_cast<intptr_t>(shared)));
    if (!memory || gpu_of_machine(d, memory->gpu()) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = d.mappable.add(std::move(memory));
    return CUDA_SUCCESS;
  });
}
