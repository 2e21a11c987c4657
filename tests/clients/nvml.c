/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program that asks NVML, as serving engines do: opened at run time, one function after the
 * other, to find devices, their memory, and whether confidential mode is on. Needs no CUDA for
 * that; a second part uses memory and looks whether NVML sees it. */

#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what) {
  fprintf(stderr, "client: %s\n", what);
  exit(1);
}

#define CHECK(condition)                \
  do {                                  \
    if (!(condition)) fail(#condition); \
  } while (0)

static void* library(const char* name) {
  void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (found == NULL) fail(dlerror());
  return found;
}

/* FIND(library, function): declares a pointer of that name, typed by the header. */
#define QUOTE(name) #name
#define SYMBOL(name) QUOTE(name)
#define FIND(from, function)                           \
  __typeof__(&function) call_##function = NULL;        \
  do {                                                 \
    void* const found = dlsym(from, SYMBOL(function)); \
    if (found == NULL) fail("no " SYMBOL(function));   \
    memcpy(&call_##function, &found, sizeof(void*));   \
  } while (0)

static void ask_confidential_state(void* nvml, int on) {
  FIND(nvml, nvmlSystemGetConfComputeState);
  FIND(nvml, nvmlSystemGetConfComputeCapabilities);
  FIND(nvml, nvmlSystemGetConfComputeSettings);
  FIND(nvml, nvmlSystemGetConfComputeGpusReadyState);
  nvmlConfComputeSystemState_t state;
  memset(&state, 0xff, sizeof state);
  CHECK(call_nvmlSystemGetConfComputeState(&state) == NVML_SUCCESS);
  CHECK(state.ccFeature == (unsigned)on);
  CHECK(state.environment ==
        (unsigned)(on ? NVML_CC_SYSTEM_ENVIRONMENT_SIM : NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE));
  CHECK(state.devToolsMode == NVML_CC_SYSTEM_DEVTOOLS_MODE_OFF);
  nvmlConfComputeSystemCaps_t capabilities;
  CHECK(call_nvmlSystemGetConfComputeCapabilities(&capabilities) == NVML_SUCCESS);
  CHECK(capabilities.gpusCaps == NVML_CC_SYSTEM_GPUS_CC_CAPABLE);
  CHECK((capabilities.cpuCaps != NVML_CC_SYSTEM_CPU_CAPS_NONE) == on);
  nvmlSystemConfComputeSettings_t settings;
  memset(&settings, 0, sizeof settings);
  settings.version = (unsigned)sizeof settings | 1u << 24;
  CHECK(call_nvmlSystemGetConfComputeSettings(&settings) == NVML_SUCCESS);
  CHECK(settings.ccFeature == (unsigned)on);
  CHECK(settings.multiGpuMode == NVML_CC_SYSTEM_MULTIGPU_NONE);
  unsigned accepting = 0;
  CHECK(call_nvmlSystemGetConfComputeGpusReadyState(&accepting) == NVML_SUCCESS);
  CHECK(accepting == NVML_CC_ACCEPTING_CLIENT_REQUESTS_TRUE);
  CHECK(call_nvmlSystemGetConfComputeState(NULL) == NVML_ERROR_INVALID_ARGUMENT);
}

static void ask_device(void* nvml, nvmlDevice_t device, int on) {
  FIND(nvml, nvmlDeviceGetName);
  FIND(nvml, nvmlDeviceGetUUID);
  FIND(nvml, nvmlDeviceGetHandleByUUID);
  FIND(nvml, nvmlDeviceGetPciInfo);
  FIND(nvml, nvmlDeviceGetHandleByPciBusId);
  FIND(nvml, nvmlDeviceGetCudaComputeCapability);
  FIND(nvml, nvmlDeviceGetConfComputeMemSizeInfo);
  FIND(nvml, nvmlDeviceGetMemoryInfo);
  char text[96] = "";
  nvmlDevice_t same = NULL;
  CHECK(call_nvmlDeviceGetName(device, text, sizeof text) == NVML_SUCCESS && text[0] != '\0');
  CHECK(call_nvmlDeviceGetName(device, text, 2) == NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK(call_nvmlDeviceGetUUID(device, text, sizeof text) == NVML_SUCCESS);
  CHECK(strncmp(text, "GPU-", 4) == 0);
  CHECK(call_nvmlDeviceGetHandleByUUID(text, &same) == NVML_SUCCESS && same == device);
  CHECK(call_nvmlDeviceGetHandleByUUID("GPU-nobody", &same) == NVML_ERROR_NOT_FOUND);
  nvmlPciInfo_t pci;
  CHECK(call_nvmlDeviceGetPciInfo(device, &pci) == NVML_SUCCESS);
  CHECK(call_nvmlDeviceGetHandleByPciBusId(pci.busId, &same) == NVML_SUCCESS && same == device);
  int major = 0;
  int minor = -1;
  CHECK(call_nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == NVML_SUCCESS);
  const char* const capability = getenv("SEALANE_EMU_COMPUTE_CAPABILITY");
  char told[16] = "";
  snprintf(told, sizeof told, "%d.%d", major, minor);
  CHECK(strcmp(told, capability == NULL ? "9.0" : capability) == 0);
  nvmlMemory_t memory;
  nvmlConfComputeMemSizeInfo_t sizes;
  CHECK(call_nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS);
  CHECK(memory.total > 0 && memory.used == 0 && memory.free == memory.total);
  CHECK(call_nvmlDeviceGetConfComputeMemSizeInfo(device, &sizes) == NVML_SUCCESS);
  CHECK((on ? sizes.protectedMemSizeKib : sizes.unprotectedMemSizeKib) == memory.total >> 10);
  CHECK((on ? sizes.unprotectedMemSizeKib : sizes.protectedMemSizeKib) == 0);
  CHECK(call_nvmlDeviceGetMemoryInfo(NULL, &memory) == NVML_ERROR_INVALID_ARGUMENT);
}

/* What communication libraries, bandwidth tools and monitors ask before they do anything. */
static void ask_connections(void* nvml, nvmlDevice_t device) {
  FIND(nvml, nvmlDeviceGetP2PStatus);
  FIND(nvml, nvmlDeviceGetFieldValues);
  FIND(nvml, nvmlDeviceGetPciInfoExt);
  FIND(nvml, nvmlDeviceGetGpuFabricInfoV);
  FIND(nvml, nvmlDeviceGetNvLinkState);
  FIND(nvml, nvmlDeviceGetCurrPcieLinkGeneration);
  FIND(nvml, nvmlDeviceGetCurrPcieLinkWidth);
  FIND(nvml, nvmlDeviceGetClockInfo);
  FIND(nvml, nvmlDeviceGetTemperature);
  FIND(nvml, nvmlDeviceGetCpuAffinity);
  FIND(nvml, nvmlDeviceSetCpuAffinity);
  FIND(nvml, nvmlDeviceGetComputeRunningProcesses_v3);
  FIND(nvml, nvmlDeviceGetGraphicsRunningProcesses_v3);
  nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_NOT_SUPPORTED;
  CHECK(call_nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_READ, &status) ==
        NVML_SUCCESS);
  CHECK(status == NVML_P2P_STATUS_OK);
  nvmlFieldValue_t field;
  memset(&field, 0xff, sizeof field);
  field.fieldId = NVML_FI_DEV_C2C_LINK_COUNT;
  CHECK(call_nvmlDeviceGetFieldValues(device, 1, &field) == NVML_SUCCESS);
  CHECK(field.nvmlReturn == NVML_SUCCESS && field.value.uiVal == 0);
  nvmlPciInfoExt_t pci;
  memset(&pci, 0, sizeof pci);
  CHECK(call_nvmlDeviceGetPciInfoExt(device, &pci) == NVML_SUCCESS && pci.bus == 1);
  nvmlGpuFabricInfoV_t fabric;
  memset(&fabric, 0xff, sizeof fabric);
  fabric.version = (unsigned)sizeof fabric | 2u << 24;
  CHECK(call_nvmlDeviceGetGpuFabricInfoV(device, &fabric) == NVML_SUCCESS);
  CHECK(fabric.state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
  nvmlEnableState_t link = NVML_FEATURE_DISABLED;
  CHECK(call_nvmlDeviceGetNvLinkState(device, 0, &link) == NVML_ERROR_NOT_SUPPORTED);
  unsigned value = 0;
  CHECK(call_nvmlDeviceGetCurrPcieLinkGeneration(device, &value) == NVML_SUCCESS && value == 5);
  CHECK(call_nvmlDeviceGetCurrPcieLinkWidth(device, &value) == NVML_SUCCESS && value == 16);
  CHECK(call_nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS && value > 0);
  CHECK(call_nvmlDeviceGetTemperature(device, 0, &value) == NVML_ERROR_NOT_SUPPORTED);
  unsigned long cpus[16] = {0};
  CHECK(call_nvmlDeviceGetCpuAffinity(device, 16, cpus) == NVML_SUCCESS);
  unsigned long any = 0;
  for (int i = 0; i < 16; ++i) any |= cpus[i];
  CHECK(any != 0);
  CHECK(call_nvmlDeviceSetCpuAffinity(device) == NVML_SUCCESS);
  nvmlProcessInfo_t process;
  value = 1;
  CHECK(call_nvmlDeviceGetComputeRunningProcesses_v3(device, &value, &process) == NVML_SUCCESS);
  CHECK(value == 0); /* nothing is allocated yet */
  value = 1;
  CHECK(call_nvmlDeviceGetGraphicsRunningProcesses_v3(device, &value, &process) == NVML_SUCCESS);
  CHECK(value == 0);
}

/* NVML's UUID and the driver's are the same bytes. */
static void compare_uuids(void* nvml, void* driver, nvmlDevice_t device) {
  FIND(nvml, nvmlDeviceGetUUID);
  FIND(driver, cuDeviceGetUuid);
  char told[96] = "";
  char expected[96] = "GPU-";
  CUuuid uuid;
  CHECK(call_nvmlDeviceGetUUID(device, told, sizeof told) == NVML_SUCCESS);
  CHECK(call_cuDeviceGetUuid(&uuid, 0) == CUDA_SUCCESS);
  for (int i = 0; i < 16; ++i) {
    const char* const dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    snprintf(expected + strlen(expected), 4, "%s%02x", dash, (unsigned char)uuid.bytes[i]);
  }
  if (strcmp(told, expected) != 0) fail("NVML and the driver disagree about the UUID");
}

static void ask_used_memory(void* nvml, nvmlDevice_t device) {
  FIND(nvml, nvmlDeviceGetMemoryInfo);
  FIND(nvml, nvmlDeviceGetComputeRunningProcesses_v3);
  void* const driver = library("libcuda.so.1");
  FIND(driver, cuInit);
  FIND(driver, cuDevicePrimaryCtxRetain);
  FIND(driver, cuCtxSetCurrent);
  FIND(driver, cuMemAlloc);
  FIND(driver, cuMemFree);
  CUcontext context = NULL;
  CUdeviceptr address = 0;
  nvmlMemory_t memory;
  CHECK(call_cuInit(0) == CUDA_SUCCESS);
  CHECK(call_cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(call_cuCtxSetCurrent(context) == CUDA_SUCCESS);
  compare_uuids(nvml, driver, device);
  CHECK(call_cuMemAlloc(&address, 32 << 20) == CUDA_SUCCESS);
  nvmlProcessInfo_t process;
  unsigned count = 1;
  CHECK(call_nvmlDeviceGetComputeRunningProcesses_v3(device, &count, &process) == NVML_SUCCESS);
  CHECK(count == 1 && process.usedGpuMemory >= 32 << 20);
  CHECK(call_nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS);
  CHECK(memory.used >= 32 << 20 && memory.free + memory.used == memory.total);
  CHECK(call_cuMemFree(address) == CUDA_SUCCESS);
}

int main(void) {
  const char* const mode = getenv("SEALANE_EMU_CC");
  const int on = mode == NULL || strcmp(mode, "off") != 0;
  void* const nvml = library("libnvidia-ml.so.1");
  FIND(nvml, nvmlInit);
  FIND(nvml, nvmlShutdown);
  FIND(nvml, nvmlDeviceGetCount);
  FIND(nvml, nvmlDeviceGetHandleByIndex);
  FIND(nvml, nvmlSystemGetCudaDriverVersion);
  FIND(nvml, nvmlErrorString);
  unsigned count = 0;
  CHECK(call_nvmlDeviceGetCount(&count) == NVML_ERROR_UNINITIALIZED);
  CHECK(strlen(call_nvmlErrorString(NVML_ERROR_UNINITIALIZED)) > 0);
  CHECK(call_nvmlInit() == NVML_SUCCESS);
  CHECK(call_nvmlDeviceGetCount(&count) == NVML_SUCCESS && count == 1);
  int version = 0;
  CHECK(call_nvmlSystemGetCudaDriverVersion(&version) == NVML_SUCCESS && version >= 12000);
  nvmlDevice_t device = NULL;
  CHECK(call_nvmlDeviceGetHandleByIndex(1, &device) == NVML_ERROR_INVALID_ARGUMENT);
  CHECK(call_nvmlDeviceGetHandleByIndex(0, &device) == NVML_SUCCESS);
  ask_confidential_state(nvml, on);
  ask_device(nvml, device, on);
  ask_connections(nvml, device);
  ask_used_memory(nvml, device);
  CHECK(call_nvmlShutdown() == NVML_SUCCESS);
  CHECK(call_nvmlShutdown() == NVML_ERROR_UNINITIALIZED);
  puts("ok");
  return 0;
}
