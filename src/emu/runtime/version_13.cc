// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is CUDA 13's alone.

#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

static_assert(sizeof(cudaDeviceProp) == 1008);

EMU_RUNTIME cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_driver([&](const Calls& calls) {
    return properties != nullptr ? fill_properties(calls, *properties, device)
                                 : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_RUNTIME_TWINS(cudaMemcpyBatchAsync, _ptsz,
                  (void* const* to, const void* const* from, const size_t* bytes, size_t count,
                   cudaMemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemcpyBatchAsync(
                        reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
                        reinterpret_cast<CUdeviceptr*>(const_cast<const void**>(from)),
                        const_cast<size_t*>(bytes), count,
                        reinterpret_cast<CUmemcpyAttributes*>(attributes), starts, attribute_count,
                        stream);
                  }))
