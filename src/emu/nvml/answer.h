// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How an NVML call looks: one line that names it, then the work with the configuration and, if it
// is about a device, after that was checked. Thread-safe: nothing here changes but the count of
// those who called nvmlInit().
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_abi/nvml.h"
#include "emu/config/config.h"

#define EMU_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t

namespace sealane::emu::nvml {

const Config* ready();  // nullptr: nobody called nvmlInit()

// Bytes of device memory this process has allocated, 0 if it has not loaded the driver.
unsigned long long used_here(unsigned index, unsigned long long total);

// Devices are numbered from 1 so that no handle is null.
inline nvmlDevice_t handle_of(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<uintptr_t>(index) + 1);
}

inline bool valid(const Config& config, nvmlDevice_t device) {
  const auto number = reinterpret_cast<uintptr_t>(device);
  return number >= 1 && number <= static_cast<uintptr_t>(config.gpus);
}

inline unsigned index_of(nvmlDevice_t device) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device) - 1);
}

// work(const Config&) if initialised and `out` is there.
template <typename Work>
nvmlReturn_t with_system(const void* out, Work&& work) {
  const Config* config = ready();
  if (config == nullptr) return NVML_ERROR_UNINITIALIZED;
  return out == nullptr ? NVML_ERROR_INVALID_ARGUMENT : work(*config);
}

template <typename Work>
nvmlReturn_t with_device(nvmlDevice_t device, const void* out, Work&& work) {
  return with_system(out, [&](const Config& config) {
    return valid(config, device) ? work(config) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

template <typename Value>
nvmlReturn_t give(nvmlDevice_t device, Value* out, Value value) {
  return with_device(device, out, [&](const Config&) {
    *out = value;
    return NVML_SUCCESS;
  });
}

// What real devices answer too if they lack something, so nobody is told on stderr.
inline nvmlReturn_t lacks(nvmlDevice_t device) {
  return with_device(device, device, [](const Config&) { return NVML_ERROR_NOT_SUPPORTED; });
}

inline nvmlReturn_t give_text(char* out, unsigned length, const char* text) {
  if (std::strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::strcpy(out, text);
  return NVML_SUCCESS;
}

}  // namespace sealane::emu::nvml
