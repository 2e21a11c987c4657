// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: thin over the driver's.

#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

CUmemLocation location_of(const cudaMemLocation& location) {
  return {static_cast<CUmemLocationType>(location.type), location.id};
}

CUresult prefetch(const Calls& calls, const void* memory, size_t bytes, const CUmemLocation& to,
                  unsigned flags, cudaStream_t stream) {
  return calls.cuMemPrefetchAsync(address(memory), bytes, to, flags, stream);
}

CUresult advise(const Calls& calls, const void* memory, size_t bytes, int advice,
                const CUmemLocation& location) {
  return calls.cuMemAdvise(address(memory), bytes, static_cast<unsigned>(advice), location);
}

}  // namespace

EMU_RUNTIME cudaMallocManaged(void** memory, size_t bytes, unsigned flags) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return calls.cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(memory), bytes, flags);
  });
}

EMU_RUNTIME_TWINS(cudaStreamAttachMemAsync, _ptsz,
                  (cudaStream_t stream, void* memory, size_t bytes, unsigned flags),
                  with_context(mode, [&](const Calls& calls) {
                    return calls.cuStreamAttachMemAsync(stream, address(memory), bytes, flags);
                  }))

// A place instead of a device's number: CUDA 13's only form, CUDA 12's second.
#define PREFETCH_TO_A_PLACE(name, suffix)                                                          \
  EMU_RUNTIME_TWINS(                                                                               \
      name, suffix,                                                                                \
      (const void* memory, size_t bytes, cudaMemLocation to, unsigned flags, cudaStream_t stream), \
      with_context(mode, [&](const Calls& calls) {                                                 \
        return prefetch(calls, memory, bytes, location_of(to), flags, stream);                     \
      }))
#define ADVISE_ABOUT_A_PLACE(name)                                                           \
  EMU_RUNTIME name(const void* memory, size_t bytes, int advice, cudaMemLocation location) { \
    return with_context(Streams::legacy, [&](const Calls& calls) {                           \
      return advise(calls, memory, bytes, advice, location_of(location));                    \
    });                                                                                      \
  }

#if CUDART_VERSION >= 13000
PREFETCH_TO_A_PLACE(cudaMemPrefetchAsync, _ptsz)
ADVISE_ABOUT_A_PLACE(cudaMemAdvise)
#else
namespace {

CUmemLocation place_of(int device) {
  return device < 0 ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                    : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace

PREFETCH_TO_A_PLACE(cudaMemPrefetchAsync_v2, _ptsz)
ADVISE_ABOUT_A_PLACE(cudaMemAdvise_v2)
EMU_RUNTIME_TWINS(cudaMemPrefetchAsync, _ptsz,
                  (const void* memory, size_t bytes, int device, cudaStream_t stream),
                  with_context(mode, [&](const Calls& calls) {
                    return prefetch(calls, memory, bytes, place_of(device), 0, stream);
                  }))
EMU_RUNTIME cudaMemAdvise(const void* memory, size_t bytes, int advice, int device) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    return advise(calls, memory, bytes, advice, place_of(device));
  });
}
#endif
#undef PREFETCH_TO_A_PLACE
#undef ADVISE_ABOUT_A_PLACE
