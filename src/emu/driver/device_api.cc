// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// cuInit, devices and their properties.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "emu/config/identity.h"
#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

constexpr int kDriverVersion = 13000;

int attribute_of(const Gpu& gpu, int attribute) {
  const Config& c = *config();
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return kCoreClockKhz;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return gpu.index + 1;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return kMemoryClockKhz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 5120;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return config()->compute_capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return config()->compute_capability % 10;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      return c.cc ? 0 : 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
      return c.stream_memory_operations ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return -1;
    default:
      return 0;  // integrated, graphics: none of that
  }
}

constexpr int kAttributesEnd = 256;  // room for attributes newer than this file

void write_bus_id(char* out, size_t length, const Gpu& gpu) {
  std::snprintf(out, length, "0000:%02x:00.0", gpu.index + 1);
}

// work(const Gpu&) for an existing device.
template <typename Work>
CUresult with_device(CUdevice device, const void* out, Work&& work) {
  return guarded([&](Driver& d) {
    const Gpu* gpu = d.gpu_at(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return work(*gpu);
  });
}

CUresult give_uuid(CUuuid* uuid, CUdevice device) {
  return with_device(device, uuid, [&](const Gpu& gpu) {
    const auto bytes = uuid_of(gpu.index);
    std::memcpy(uuid->bytes, bytes.data(), bytes.size());
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_API cuInit(unsigned flags) {
  return without_driver([&] { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : start_driver(); });
}

EMU_API cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

EMU_API cuDeviceGetCount(int* count) {
  return guarded([&](Driver& d) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(d.gpus.size());
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGet(CUdevice* device, int ordinal) {
  return with_device(ordinal, device, [&](const Gpu& gpu) {
    *device = gpu.ordinal;
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetName(char* name, int length, CUdevice device) {
  return with_device(device, name, [&](const Gpu&) {
    if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<size_t>(length), "%s", config()->gpu_name.c_str());
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return give_uuid(uuid, device); }

EMU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return give_uuid(uuid, device); }

EMU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return with_device(device, bytes, [&](const Gpu& gpu) {
    *bytes = gpu.memory.total_bytes();
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return with_device(device, value, [&](const Gpu& gpu) {
    const int number = static_cast<int>(attribute);
    if (number <= 0 || number >= kAttributesEnd) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_of(gpu, number);
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetProperties(CUdevprop* out, CUdevice device) {
  return with_device(device, out, [&](const Gpu& gpu) {
    const auto get = [&](CUdevice_attribute attribute) { return attribute_of(gpu, attribute); };
    *out = CUdevprop{
        get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        {get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
         get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        {get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
         get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return with_device(device, major, [&](const Gpu&) {
    if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = config()->compute_capability / 10;
    *minor = config()->compute_capability % 10;
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return with_device(device, id, [&](const Gpu& gpu) {
    if (length < 13) return CUDA_ERROR_INVALID_VALUE;
    write_bus_id(id, static_cast<size_t>(length), gpu);
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return guarded([&](Driver& d) {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& gpu : d.gpus) {
      char name[16];
      write_bus_id(name, sizeof name, *gpu);
      if (strcasecmp(name, id) != 0 && strcasecmp(name + 5, id) != 0) continue;
      *device = gpu->ordinal;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

EMU_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return guarded([&](Driver& d) {
    if (d.gpu_at(device) == nullptr || d.gpu_at(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer && !config()->cc ? 1 : 0;  // in CC mode peers are reached by copies
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                CUdevice to) {
  return guarded([&](Driver& d) {
    if (d.gpu_at(from) == nullptr || d.gpu_at(to) == nullptr || from == to) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool access = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    *value = access && !config()->cc ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
