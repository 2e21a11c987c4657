// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What monitors show: clocks, modes, who uses a device. An emulated device has no temperature, fan
// or power, and answers as a device without that sensor does.

#include <unistd.h>

#include "emu/config/identity.h"
#include "emu/nvml/answer.h"

using namespace sealane::emu;
using namespace sealane::emu::nvml;

namespace {

constexpr unsigned kGraphicsMhz = kCoreClockKhz / 1000;
constexpr unsigned kMemoryMhz = kMemoryClockKhz / 1000;
constexpr int kBrandNvidia = 14;
constexpr unsigned kArchitectureHopper = 9;
constexpr unsigned kNoInstance = 0xffffffff;

nvmlReturn_t clock_of(nvmlDevice_t device, nvmlClockType_t which, unsigned* mhz) {
  if (which == NVML_CLOCK_VIDEO) return lacks(device);
  if (which > NVML_CLOCK_VIDEO) return NVML_ERROR_INVALID_ARGUMENT;
  return give(device, mhz, which == NVML_CLOCK_MEM ? kMemoryMhz : kGraphicsMhz);
}

nvmlProcessInfo_v1_t describe(unsigned pid, unsigned long long bytes, nvmlProcessInfo_v1_t*) {
  return {pid, bytes};
}
nvmlProcessInfo_t describe(unsigned pid, unsigned long long bytes, nvmlProcessInfo_t*) {
  return {pid, bytes, kNoInstance, kNoInstance};
}

// Devices live in the processes that use them, so NVML sees its own process only.
template <typename Info>
nvmlReturn_t compute_processes(nvmlDevice_t device, unsigned* count, Info* processes) {
  return with_device(device, count, [&](const Config& config) {
    const unsigned long long used = used_here(index_of(device), config.memory_bytes);
    const unsigned room = *count;
    *count = used > 0 ? 1 : 0;
    if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (*count == 0) return NVML_SUCCESS;
    if (processes == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    processes[0] = describe(static_cast<unsigned>(getpid()), used, processes);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t no_processes(nvmlDevice_t device, unsigned* count) { return give(device, count, 0u); }

}  // namespace

EMU_NVML nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t which, unsigned* mhz) {
  return clock_of(device, which, mhz);
}
EMU_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t which, unsigned* mhz) {
  return clock_of(device, which, mhz);
}
EMU_NVML nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t which, unsigned* mhz) {
  return clock_of(device, which, mhz);
}

EMU_NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                              nvmlProcessInfo_v1_t* processes) {
  return compute_processes(device, count, processes);
}
EMU_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                 nvmlProcessInfo_t* processes) {
  return compute_processes(device, count, processes);
}
EMU_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                 nvmlProcessInfo_t* processes) {
  return compute_processes(device, count, processes);
}

// NONE(name): nobody draws here, and there is no MPS.
#define NONE(name) \
  EMU_NVML name(nvmlDevice_t device, unsigned* count, void*) { return no_processes(device, count); }
NONE(nvmlDeviceGetGraphicsRunningProcesses)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
#undef NONE
EMU_NVML nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_t*) {
  return no_processes(device, count);
}

EMU_NVML nvmlDeviceGetBrand(nvmlDevice_t device, int* brand) {
  return give(device, brand, kBrandNvidia);
}
EMU_NVML nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned* architecture) {
  return give(device, architecture, kArchitectureHopper);
}
EMU_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) {
  return give(device, minor, index_of(device));
}
EMU_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, int* mode) { return give(device, mode, 0); }
EMU_NVML nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return give(device, mode, NVML_FEATURE_ENABLED);
}
EMU_NVML nvmlDeviceGetPowerState(nvmlDevice_t device, int* state) { return give(device, state, 0); }
EMU_NVML nvmlDeviceGetPerformanceState(nvmlDevice_t device, int* state) {
  return give(device, state, 0);
}
EMU_NVML nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                              nvmlEnableState_t* pending) {
  const nvmlReturn_t given = give(device, pending, NVML_FEATURE_ENABLED);
  return given == NVML_SUCCESS ? give(device, current, NVML_FEATURE_ENABLED) : given;
}
EMU_NVML nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  const nvmlReturn_t given = give(device, pending, 0u);
  return given == NVML_SUCCESS ? give(device, current, 0u) : given;
}

EMU_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned*, unsigned*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned*, unsigned*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetProcessUtilization(nvmlDevice_t device, void*, unsigned*,
                                         unsigned long long) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int, unsigned*) { return lacks(device); }
EMU_NVML nvmlDeviceGetTemperature(nvmlDevice_t device, int, unsigned*) { return lacks(device); }
EMU_NVML nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int, unsigned*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned*) { return lacks(device); }
EMU_NVML nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned*) { return lacks(device); }
EMU_NVML nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned*) { return lacks(device); }
