// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How devices are connected, as communication libraries and bandwidth tools ask: PCIe 5.0 x16 each,
// peers of each other while CC mode is off, no NVLink, no fabric.

#include <sched.h>

#include <cstdio>

#include "emu/nvml/answer.h"

using namespace sealane::emu;
using namespace sealane::emu::nvml;

namespace {

constexpr unsigned kPcieGeneration = 5;
constexpr unsigned kPcieLanes = 16;
constexpr unsigned kPcieMbps = 32000;
constexpr unsigned kPcieMaxSpeed32000 = 5;     // the code NVML has for that speed
constexpr unsigned kDisplayController = 0x03;  // PCI class 0x0302: a 3D controller
constexpr unsigned k3dController = 0x02;

}  // namespace

EMU_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t peer, nvmlGpuP2PCapsIndex_t which,
                                nvmlGpuP2PStatus_t* status) {
  return with_device(device, status, [&](const Config& config) {
    if (!valid(config, peer)) return NVML_ERROR_INVALID_ARGUMENT;
    const bool memory = which == NVML_P2P_CAPS_INDEX_READ || which == NVML_P2P_CAPS_INDEX_WRITE ||
                        which == NVML_P2P_CAPS_INDEX_PROP;
    const bool reachable = memory && (device == peer || !config.cc);
    *status = reachable ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                             nvmlGpuTopologyLevel_t* level) {
  return with_device(device, level, [&](const Config& config) {
    if (!valid(config, other)) return NVML_ERROR_INVALID_ARGUMENT;
    *level = device == other ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  return with_device(device, values, [&](const Config&) {
    if (count < 0) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; ++i) {
      nvmlFieldValue_t& value = values[i];
      const bool known = value.fieldId == NVML_FI_DEV_NVLINK_LINK_COUNT ||
                         value.fieldId == NVML_FI_DEV_C2C_LINK_COUNT;
      value.nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
      value.timestamp = value.latencyUsec = 0;
      value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      value.value.ullVal = 0;  // there are no such links
    }
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned, nvmlEnableState_t*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned, unsigned*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned, int, unsigned*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned, nvmlPciInfo_t*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned, nvmlPciInfo_t*) {
  return lacks(device);
}
EMU_NVML nvmlDeviceGetPlatformInfo(nvmlDevice_t device, void*) { return lacks(device); }

EMU_NVML nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* fabric) {
  return with_device(device, fabric, [&](const Config&) {
    *fabric = {};
    fabric->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t* fabric) {
  return with_device(device, fabric, [&](const Config&) {
    const unsigned version = fabric->version;
    if (version >> 24 < 2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *fabric = {};
    fabric->version = version;
    fabric->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* pci) {
  return with_device(device, pci, [&](const Config&) {
    const unsigned version = pci->version;
    *pci = {};
    pci->version = version;
    pci->bus = index_of(device) + 1;
    pci->baseClass = kDisplayController;
    pci->subClass = k3dController;
    std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
  });
}

EMU_NVML nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return give(device, generation, kPcieGeneration);
}
EMU_NVML nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return give(device, generation, kPcieGeneration);
}
EMU_NVML nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* lanes) {
  return give(device, lanes, kPcieLanes);
}
EMU_NVML nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* lanes) {
  return give(device, lanes, kPcieLanes);
}
EMU_NVML nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned* speed) {
  return give(device, speed, kPcieMaxSpeed32000);
}
EMU_NVML nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned* mbps) {
  return give(device, mbps, kPcieMbps);
}

// Every CPU this process may use is as near as any other.
EMU_NVML nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long* cpus) {
  return with_device(device, cpus, [&](const Config&) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return NVML_ERROR_UNKNOWN;
    constexpr unsigned kBits = 8 * sizeof(unsigned long);
    std::memset(cpus, 0, words * sizeof(unsigned long));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && cpu < words * kBits; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) cpus[cpu / kBits] |= 1ul << (cpu % kBits);
    }
    return NVML_SUCCESS;
  });
}
EMU_NVML nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned words,
                                             unsigned long* cpus, unsigned) {
  return nvmlDeviceGetCpuAffinity(device, words, cpus);
}
EMU_NVML nvmlDeviceSetCpuAffinity(nvmlDevice_t device) {
  return with_device(device, device, [](const Config&) { return NVML_SUCCESS; });
}
EMU_NVML nvmlDeviceClearCpuAffinity(nvmlDevice_t device) {
  return with_device(device, device, [](const Config&) { return NVML_SUCCESS; });
}
