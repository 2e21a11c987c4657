// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// NVML of the emulated GPU: what serving engines ask to find out about devices, memory and CC mode.
// Answers from the same configuration as the driver; memory in use is the driver's, if this process
// has loaded it. What is not there is in unsupported.cc.

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "emu/config/identity.h"
#include "emu/nvml/answer.h"

using namespace sealane::emu;
using namespace sealane::emu::nvml;

namespace {

std::atomic<int> users{0};

}  // namespace

const Config* sealane::emu::nvml::ready() { return users.load() > 0 ? config() : nullptr; }

// The driver may be loaded without its symbols being global.
unsigned long long sealane::emu::nvml::used_here(unsigned index, unsigned long long total) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  const auto used =
      reinterpret_cast<uint64_t (*)(unsigned)>(dlsym(driver, "sealane_emu_used_bytes"));
  const unsigned long long bytes = used != nullptr ? used(index) : 0;
  dlclose(driver);
  return bytes < total ? bytes : total;
}

EMU_NVML nvmlInitWithFlags(unsigned) {
  if (config() == nullptr) return NVML_ERROR_UNKNOWN;
  ++users;
  return NVML_SUCCESS;
}

EMU_NVML nvmlInit_v2() { return nvmlInitWithFlags(0); }
EMU_NVML nvmlInit() { return nvmlInitWithFlags(0); }

EMU_NVML nvmlShutdown() {
  int now = users.load();
  while (now > 0 && !users.compare_exchange_weak(now, now - 1)) {
  }
  return now > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

EMU_NVML nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return with_system(version, [&](const Config&) { return give_text(version, length, "580.0"); });
}

EMU_NVML nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return with_system(version,
                     [&](const Config&) { return give_text(version, length, "13.580.0"); });
}

EMU_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return with_system(version, [&](const Config&) {
    *version = 13000;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

EMU_NVML nvmlDeviceGetCount_v2(unsigned* count) {
  return with_system(count, [&](const Config& config) {
    *count = static_cast<unsigned>(config.gpus);
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

EMU_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  return with_system(device, [&](const Config& config) {
    if (index >= static_cast<unsigned>(config.gpus)) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(index);
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EMU_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  return with_system(device, [&](const Config& config) {
    if (uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < static_cast<unsigned>(config.gpus); ++i) {
      if (uuid_text(static_cast<int>(i)) != uuid) continue;
      *device = handle_of(i);
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

EMU_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  return with_system(device, [&](const Config& config) {
    unsigned domain = 0;
    unsigned bus = 0;
    const bool read = id != nullptr && std::sscanf(id, "%x:%x:", &domain, &bus) == 2;
    if (!read) return NVML_ERROR_INVALID_ARGUMENT;
    if (domain != 0 || bus < 1 || bus > static_cast<unsigned>(config.gpus)) {
      return NVML_ERROR_NOT_FOUND;
    }
    *device = handle_of(bus - 1);
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

EMU_NVML nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  return with_device(device, index, [&](const Config&) {
    *index = index_of(device);
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  return with_device(device, name, [&](const Config& config) {
    return give_text(name, length, config.gpu_name.c_str());
  });
}

EMU_NVML nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  return with_device(device, uuid, [&](const Config&) {
    return give_text(uuid, length, uuid_text(static_cast<int>(index_of(device))).c_str());
  });
}

EMU_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return with_device(device, pci, [&](const Config&) {
    const unsigned bus = index_of(device) + 1;
    *pci = {};
    pci->bus = bus;
    std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02x:00.0", bus);
    std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02x:00.0", bus);
    return NVML_SUCCESS;
  });
}

// The first versions end before the long bus id.
EMU_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  nvmlPciInfo_t whole;
  const nvmlReturn_t result =
      pci == nullptr ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetPciInfo_v3(device, &whole);
  if (result == NVML_SUCCESS) {
    std::memcpy(static_cast<void*>(pci), &whole, offsetof(nvmlPciInfo_t, busId));
  }
  return result;
}

EMU_NVML nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return nvmlDeviceGetPciInfo_v2(device, pci);
}

EMU_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return with_device(device, memory, [&](const Config& config) {
    memory->total = config.memory_bytes;
    memory->used = used_here(index_of(device), memory->total);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  return with_device(device, memory, [&](const Config& config) {
    memory->total = config.memory_bytes;
    memory->reserved = 0;
    memory->used = used_here(index_of(device), memory->total);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  return with_device(device, major, [&](const Config& config) {
    if (minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *major = config.compute_capability / 10;
    *minor = config.compute_capability % 10;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t* capabilities) {
  return with_system(capabilities, [&](const Config& config) {
    capabilities->cpuCaps =
        config.cc ? NVML_CC_SYSTEM_CPU_CAPS_INTEL_TDX : NVML_CC_SYSTEM_CPU_CAPS_NONE;
    capabilities->gpusCaps = NVML_CC_SYSTEM_GPUS_CC_CAPABLE;
    return NVML_SUCCESS;
  });
}

// Engines switch on ccFeature; the environment says honestly that this is a simulation.
EMU_NVML nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t* state) {
  return with_system(state, [&](const Config& config) {
    state->environment =
        config.cc ? NVML_CC_SYSTEM_ENVIRONMENT_SIM : NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE;
    state->ccFeature = config.cc ? NVML_CC_SYSTEM_FEATURE_ENABLED : NVML_CC_SYSTEM_FEATURE_DISABLED;
    state->devToolsMode = NVML_CC_SYSTEM_DEVTOOLS_MODE_OFF;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t* settings) {
  return with_system(settings, [&](const Config&) {
    nvmlConfComputeSystemState_t state;
    const nvmlReturn_t result = nvmlSystemGetConfComputeState(&state);
    settings->environment = state.environment;
    settings->ccFeature = state.ccFeature;
    settings->devToolsMode = state.devToolsMode;
    settings->multiGpuMode = NVML_CC_SYSTEM_MULTIGPU_NONE;
    return result;
  });
}

EMU_NVML nvmlSystemGetConfComputeGpusReadyState(unsigned* accepting) {
  return with_system(accepting, [&](const Config&) {
    *accepting = NVML_CC_ACCEPTING_CLIENT_REQUESTS_TRUE;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                             nvmlConfComputeMemSizeInfo_t* memory) {
  return with_device(device, memory, [&](const Config& config) {
    memory->protectedMemSizeKib = config.cc ? config.memory_bytes >> 10 : 0;
    memory->unprotectedMemSizeKib = config.cc ? 0 : config.memory_bytes >> 10;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t* memory) {
  return nvmlDeviceGetMemoryInfo(device, memory);
}
