// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the emulated driver offers beyond CUDA (abi/sealane_emu.h).

#include <algorithm>

#include "emu/abi/sealane_emu.h"
#include "emu/channel/disturbance.h"
#include "emu/channel/sealing.h"
#include "emu/driver/api.h"

using namespace sealane::emu;

#define EMU_BEYOND extern "C" __attribute__((visibility("default")))

EMU_BEYOND int sealane_emu_register(const sealane_emu_kernel* kernel) {
  return kernel != nullptr && register_kernel(*kernel) ? 0 : 1;
}

EMU_BEYOND int sealane_emu_register_symbol(const char* name, uint64_t address, size_t bytes) {
  return register_symbol(name, address, bytes) ? 0 : 1;
}

EMU_BEYOND uint64_t sealane_emu_clock_ns() { return thread_ns(); }

EMU_BEYOND void sealane_emu_go_on(uint64_t clock_ns_then) {
  if (config() != nullptr) go_on_from(clock_ns_then);
}

EMU_BEYOND uint64_t sealane_emu_device_ns() {
  static const RealNs began = clock_ns();
  return config() == nullptr ? 0 : static_cast<uint64_t>(device_ns_of(clock_ns() - began));
}

EMU_BEYOND double sealane_emu_dilation() {
  return config() != nullptr && config()->paced ? config()->dilation : 0;
}

EMU_BEYOND void sealane_emu_pace(sealane_emu_work work, uint64_t bytes, uint64_t began_ns) {
  if (config() == nullptr || !config()->paced) return;
  const Model& model = config()->model;
  double rate = model.to_device.cc_aead_gb_per_s;
  if (work == SEALANE_EMU_AEAD_FAST) rate = model.host_fast_aead_gb_per_s;
  if (work == SEALANE_EMU_HOST_COPY) rate = model.host_memcpy_gb_per_s;
  if (work == SEALANE_EMU_DIGEST) rate = model.guard_digest_gb_per_s;
  const RealNs end = std::min<RealNs>(began_ns, clock_ns()) + real_ns_of(ns_at(rate, bytes));
  finish_by(end);
  go_on_from(end);
}

EMU_BEYOND void sealane_emu_pace_aead(uint64_t bytes, uint64_t began_ns) {
  sealane_emu_pace(SEALANE_EMU_AEAD_STOCK, bytes, began_ns);
}

EMU_BEYOND void sealane_emu_pace_answered(uint64_t bytes) { note_answered(bytes); }

EMU_BEYOND int sealane_emu_disturb(const char* what) {
  return config() != nullptr && what != nullptr && disturb(what) ? 0 : 1;
}

// For our NVML, which counts the machine's devices: memory in use on one, by this process.
EMU_BEYOND uint64_t sealane_emu_used_bytes(unsigned device) {
  const Driver* d = driver();
  if (d == nullptr) return 0;
  for (const auto& gpu : d->gpus) {
    if (static_cast<unsigned>(gpu->index) == device) return gpu->memory.used_bytes();
  }
  return 0;
}
