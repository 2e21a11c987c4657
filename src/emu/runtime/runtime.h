// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every runtime call needs: the driver's calls, a current context (the device's primary one,
// made at first use), and the thread's last error.
#pragma once

#include "emu/runtime/driver.h"

#define EMU_RUNTIME extern "C" __attribute__((visibility("default"))) cudaError_t

// A call and its twin for programs built with per-thread default streams. In `body`, `mode` names
// which.
#define EMU_RUNTIME_TWINS(name, suffix, parameters, body)               \
  EMU_RUNTIME name parameters {                                         \
    constexpr auto mode = ::sealane::emu::runtime::Streams::legacy;     \
    return body;                                                        \
  }                                                                     \
  EMU_RUNTIME name##suffix parameters {                                 \
    constexpr auto mode = ::sealane::emu::runtime::Streams::per_thread; \
    return body;                                                        \
  }

namespace sealane::emu::runtime {

enum class Streams : unsigned char { legacy, per_thread };

// Remembers an error for cudaGetLastError() and returns it.
cudaError_t note(cudaError_t error);
inline cudaError_t note(CUresult result) { return note(static_cast<cudaError_t>(result)); }

// What a call that is not there answers; with a name it is said on stderr.
int unsupported(const char* name);

// The driver, initialised; an error otherwise. Needs no context.
cudaError_t start(const Calls*& calls, Streams mode = Streams::legacy);

// The driver with a context current on this thread.
cudaError_t enter(const Calls*& calls, Streams mode = Streams::legacy);

// Of a device, made at first use and kept: the runtime never lets go of one by itself.
CUresult primary_context(const Calls& calls, int device, CUcontext& out);

int device_of_this_thread();
void set_device_of_this_thread(int device);
void forget_contexts(int device);  // after a reset: the next use makes a new one

// work(const Calls&) → CUresult or cudaError_t, with a context.
template <typename Work>
cudaError_t with_context(Streams mode, Work&& work) noexcept {
  const Calls* calls = nullptr;
  const cudaError_t ready = enter(calls, mode);
  return ready != cudaSuccess ? note(ready) : note(work(*calls));
}

template <typename Work>
cudaError_t with_driver(Work&& work) noexcept {
  const Calls* calls = nullptr;
  const cudaError_t ready = start(calls);
  return ready != cudaSuccess ? note(ready) : note(work(*calls));
}

// The fields of every CUDA version. What only one version has is in version_*.cc.
CUresult fill_properties(const Calls& calls, cudaDeviceProp& properties, int device);

inline CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace sealane::emu::runtime
