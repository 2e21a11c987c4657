// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The calls of libcuda.so.1 and libnvidia-ml.so.1 that tell what GPU there is, with the driver's
// C types, answering for one H100. FAKE_GPU_CC holds the CC state as NVML's three numbers
// ("2 1 0": production, on, no developer tools); FAKE_GPU_INIT is the result of cuInit.
#include <stdio.h>
#include <stdlib.h>

static int number(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? 0 : atoi(value);
}

int cuInit(unsigned flags) { return flags == 0 ? number("FAKE_GPU_INIT") : 1; }

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = 40;
  return ordinal == 0 ? 0 : 101;
}

int cuDeviceGetName(char* name, int length, int device) {
  snprintf(name, (size_t)length, "%s", device == 40 ? "NVIDIA H100 NVL" : "wrong device");
  return 0;
}

struct nvml_device {
  int unused;
};

static struct nvml_device only_device;

struct conf_compute_state {
  unsigned environment;
  unsigned cc_feature;
  unsigned dev_tools_mode;
};

int nvmlInit_v2(void) { return 0; }

int nvmlShutdown(void) { return 0; }

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  snprintf(version, length, "550.127.05");
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device** device) {
  *device = &only_device;
  return index == 0 ? 0 : 2;
}

int nvmlDeviceGetName(struct nvml_device* device, char* name, unsigned length) {
  snprintf(name, length, "%s", device == &only_device ? "NVIDIA H100 NVL" : "wrong device");
  return 0;
}

int nvmlSystemGetConfComputeState(struct conf_compute_state* state) {
  const char* numbers = getenv("FAKE_GPU_CC");
  if (numbers == NULL) return 3;  // not supported
  const int read =
      sscanf(numbers, "%u %u %u", &state->environment, &state->cc_feature, &state->dev_tools_mode);
  return read == 3 ? 0 : 999;
}
