// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Device memory, pinned and registered host memory, questions about pointers.

#include "base/bytes.h"
#include "emu/driver/api.h"
#include "emu/driver/graph_memory.h"

using namespace sealane::emu;

namespace {

constexpr uint64_t kPitch = 512;

CUresult allocate(Context& context, CUdeviceptr* out, size_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const RealNs began = thread_ns();
  const auto address = context.gpu().memory.allocate(bytes, context.id());
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = *address;
  charge_call(context, began);
  return CUDA_SUCCESS;
}

CUresult allocate_host(void** out, size_t bytes, unsigned flags) {
  return in_context([&](Driver& d, Context& context) {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (out == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    *out = d.host.allocate(bytes, context.id(), flags, config()->cc);
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult register_host(void* memory, size_t bytes, unsigned flags) {
  return in_context([&](Driver& d, Context& context) {
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if (memory == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (config()->cc) return CUDA_ERROR_NOT_SUPPORTED;  // and nothing sticks
    if (d.gpu_of(reinterpret_cast<uint64_t>(memory)) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!host_range_usable(memory, bytes, false)) return CUDA_ERROR_INVALID_VALUE;
    return d.host.add_registered(memory, bytes, context.id(), flags)
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

// What is known of a pointer that belongs to a device or to host memory of ours.
struct Known {
  bool device = false;
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint64_t owner = 0;
  uint64_t serial = 0;
  int ordinal = 0;
  const void* pool = nullptr;
  bool managed = false;
};

std::optional<Known> know(Driver& d, uint64_t address) {
  if (const Gpu* gpu = d.gpu_of(address)) {
    const auto block = gpu->memory.find(address);
    if (!block) return std::nullopt;
    return Known{true,          block->address, block->bytes, block->owner,
                 block->serial, gpu->ordinal,   block->pool,  false};
  }
  const auto range = d.host.find(address);
  if (!range) return std::nullopt;
  return Known{range->managed, range->address, range->bytes, range->owner, range->address, 0,
               nullptr,        range->managed};
}

CUcontext context_handle(Driver& d, uint64_t id) {
  for (const auto& context : d.contexts.all()) {
    if (context->id() == id) return reinterpret_cast<CUcontext>(context.get());
  }
  return nullptr;
}

template <typename Value>
CUresult give(void* data, Value value) {
  *static_cast<Value*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult pointer_attribute(Driver& d, void* data, CUpointer_attribute attribute, uint64_t address,
                           const Known& known) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give(data, context_handle(d, known.owner));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(data, known.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (known.device && !known.managed) return CUDA_ERROR_INVALID_VALUE;
      return give(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<unsigned>(data, known.managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give<unsigned long long>(data, known.serial);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(data, known.ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<CUdeviceptr>(data, known.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<size_t>(data, known.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<unsigned>(data, 1);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give(data, static_cast<CUmemoryPool>(const_cast<void*>(known.pool)));
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// For a list, an unknown pointer is no error: every answer is zero.
void nothing_known(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(data) = 0;
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = CU_DEVICE_INVALID;
      return;
    default:
      *static_cast<uint64_t*>(data) = 0;
  }
}

}  // namespace

EMU_API cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return in_context([&](Driver&, Context& context) {
    if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const DeviceMemory& memory = context.gpu().memory;
    *total_bytes = memory.total_bytes();
    *free_bytes = memory.total_bytes() - memory.used_bytes();
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return in_context([&](Driver&, Context& context) { return allocate(context, address, bytes); });
}

EMU_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                           unsigned element_bytes) {
  return in_context([&](Driver&, Context& context) {
    const bool element_ok = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (pitch == nullptr || width == 0 || height == 0 || !element_ok) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (width > UINT64_MAX / 2 / height) return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t padded = (width + kPitch - 1) & ~(kPitch - 1);
    const CUresult made = allocate(context, address, padded * height);
    if (made == CUDA_SUCCESS) *pitch = padded;
    return made;
  });
}

EMU_API cuMemFree_v2(CUdeviceptr address) {
  return in_context([&](Driver& d, Context& context) {
    if (address == 0) return CUDA_SUCCESS;
    const CUresult allowed = allow_synchronising(d, nullptr);
    if (allowed != CUDA_SUCCESS) return allowed;
    const auto range = d.host.find(address);
    if (range && range->managed && range->address == address) {
      context.synchronise();
      return d.host.release(reinterpret_cast<void*>(address)) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
    }
    Gpu* gpu = d.gpu_of(address);
    const auto block = gpu != nullptr ? gpu->memory.find(address) : std::nullopt;
    if (!block || block->mapped || block->address != address) return CUDA_ERROR_INVALID_VALUE;
    context.synchronise();  // as CUDA's does
    const RealNs began = thread_ns();
    if (const auto memory = GraphMemory::at(address)) {
      memory->set_allocated(false);
      return CUDA_SUCCESS;
    }
    if (!gpu->memory.release(address)) return CUDA_ERROR_INVALID_VALUE;
    charge_call(context, began);
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return in_context([&](Driver& d, Context&) {
    const auto known = know(d, address);
    if (!known) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = known->base;
    if (bytes != nullptr) *bytes = known->bytes;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemAllocHost_v2(void** memory, size_t bytes) { return allocate_host(memory, bytes, 0); }

EMU_API cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return allocate_host(memory, bytes, flags);
}

EMU_API cuMemFreeHost(void* memory) {
  return in_context([&](Driver& d, Context& context) {
    const auto range = d.host.find(reinterpret_cast<uint64_t>(memory));
    if (memory == nullptr || !range || range->managed) return CUDA_ERROR_INVALID_VALUE;
    context.synchronise();
    return d.host.release(memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  return in_context([&](Driver& d, Context&) {
    if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto range = d.host.find(reinterpret_cast<uint64_t>(memory));
    if (!range || range->managed) return CUDA_ERROR_INVALID_VALUE;
    *address = reinterpret_cast<uint64_t>(memory);
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemHostGetFlags(unsigned* flags, void* memory) {
  return in_context([&](Driver& d, Context&) {
    const auto range = d.host.find(reinterpret_cast<uint64_t>(memory));
    if (flags == nullptr || !range || range->managed) return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags;
    return CUDA_SUCCESS;
  });
}

EMU_API cuMemHostRegister(void* memory, size_t bytes, unsigned flags) {
  return register_host(memory, bytes, flags);
}

EMU_API cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  return register_host(memory, bytes, flags);
}

EMU_API cuMemHostUnregister(void* memory) {
  return in_context([&](Driver& d, Context& context) {
    context.synchronise();
    if (!d.host.remove_registered(memory)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    forget_found_memory();
    return CUDA_SUCCESS;
  });
}

EMU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return guarded([&](Driver& d) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto known = know(d, address);
    return known ? pointer_attribute(d, data, attribute, address, *known)
                 : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                               CUdeviceptr address) {
  return guarded([&](Driver& d) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto known = know(d, address);
    for (unsigned i = 0; i < count; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const bool given =
          known && pointer_attribute(d, data[i], attributes[i], address, *known) == CUDA_SUCCESS;
      if (!given) nothing_known(data[i], attributes[i]);
    }
    return CUDA_SUCCESS;
  });
}

EMU_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                              CUdeviceptr address) {
  return guarded([&](Driver& d) {
    if (value == nullptr || !know(d, address)) return CUDA_ERROR_INVALID_VALUE;
    return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  });
}
