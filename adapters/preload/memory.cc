// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocations: what is device memory, what is pinned, and whose.

#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;
using sealane::Range;

namespace {

int current_device() {
  int device = 0;
  const CUcontext context = current_context();
  return context != nullptr && port().device_of(handle(context), device) == serve::kSuccess ? device
                                                                                            : -1;
}

void note_device(CUdeviceptr address, uint64_t bytes) {
  serve::Runtime::get()->device_memory().add({address, bytes},
                                             {current_device(), current_context()});
}

// What those who watch are told of.
auto made_on_device(const CUdeviceptr* address, uint64_t bytes) {
  return [=](serve::Event& event) {
    event.call = serve::Call::allocate_device;
    event.bytes = bytes;
    if (event.code == CUDA_SUCCESS) event.device_address = *address;
  };
}

auto made_on_host(void* const* memory, uint64_t bytes) {
  return [=](serve::Event& event) {
    event.call = serve::Call::allocate_host;
    event.bytes = bytes;
    event.pinned = true;
    if (event.code == CUDA_SUCCESS) event.host = reinterpret_cast<uint64_t>(*memory);
  };
}

void note_pinned(void* memory, uint64_t bytes, unsigned flags) {
  serve::Runtime::get()->host_memory().add({reinterpret_cast<uint64_t>(memory), bytes},
                                           {false, false, flags, current_context()});
}

}  // namespace

SEALANE_HOOKED cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const auto next = SEALANE_REAL(cuMemAlloc_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        const CUresult result = next(address, bytes);
        if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr)
          note_device(*address, bytes);
        return result;
      },
      "cuMemAlloc", made_on_device(address, bytes));
}

SEALANE_HOOKED cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                  unsigned element) {
  const auto next = SEALANE_REAL(cuMemAllocPitch_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        const CUresult result = next(address, pitch, width, height, element);
        if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr) {
          note_device(*address, *pitch * height);
        }
        return result;
      },
      "cuMemAllocPitch",
      [&](serve::Event& event) {
        made_on_device(address, event.code == CUDA_SUCCESS ? *pitch * height : 0)(event);
      });
}

SEALANE_HOOKED cuMemFree_v2(CUdeviceptr address) {
  const auto next = SEALANE_REAL(cuMemFree_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        serve::Runtime* runtime = serve::Runtime::get();
        if (runtime == nullptr) return next(address);
        const auto gone = runtime->device_memory().remove(address);
        if (gone) runtime->drain(gone->range);
        const CUresult result = next(address);
        if (gone && result != CUDA_SUCCESS) runtime->device_memory().add(gone->range, gone->what);
        return result;
      },
      "cuMemFree",
      [&](serve::Event& event) {
        event.call = serve::Call::free_device;
        event.device_address = address;
      });
}

SEALANE_HOOKED cuMemAllocHost_v2(void** memory, size_t bytes) {
  const auto next = SEALANE_REAL(cuMemAllocHost_v2);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        const CUresult result = next(memory, bytes);
        if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr)
          note_pinned(*memory, bytes, 0);
        return result;
      },
      "cuMemAllocHost", made_on_host(memory, bytes));
}

SEALANE_HOOKED cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  const auto next = SEALANE_REAL(cuMemHostAlloc);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        const CUresult result = next(memory, bytes, flags);
        if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr) {
          note_pinned(*memory, bytes, flags);
        }
        return result;
      },
      "cuMemHostAlloc", made_on_host(memory, bytes));
}

SEALANE_HOOKED cuMemFreeHost(void* memory) {
  const auto next = SEALANE_REAL(cuMemFreeHost);
  if (next == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return plain(
      [&] {
        serve::Runtime* runtime = serve::Runtime::get();
        if (runtime == nullptr) return next(memory);
        const auto gone = runtime->host_memory().remove(reinterpret_cast<uint64_t>(memory));
        if (gone) runtime->drain(gone->range);
        return next(memory);
      },
      "cuMemFreeHost",
      [&](serve::Event& event) {
        event.call = serve::Call::free_host;
        event.host = reinterpret_cast<uint64_t>(memory);
      });
}

#define PLAIN(symbol, parameters, arguments)                                                     \
  SEALANE_HOOKED symbol parameters {                                                             \
    const auto next = SEALANE_REAL(symbol);                                                      \
    return next == nullptr ? CUDA_ERROR_NOT_INITIALIZED : plain([&] { return next arguments; }); \
  }
PLAIN(cuMemHostRegister, (void* memory, size_t bytes, unsigned flags), (memory, bytes, flags))
PLAIN(cuMemHostRegister_v2, (void* memory, size_t bytes, unsigned flags), (memory, bytes, flags))
PLAIN(cuMemHostUnregister, (void* memory), (memory))
PLAIN(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void* memory, unsigned flags),
      (address, memory, flags))
PLAIN(cuMemHostGetFlags, (unsigned* flags, void* memory), (flags, memory))
PLAIN(cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr address),
      (data, attribute, address))
PLAIN(cuPointerGetAttributes,
      (unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address),
      (count, attributes, data, address))
PLAIN(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* bytes, CUdeviceptr address),
      (base, bytes, address))
