// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: memory of the host that kernels use at the same address. It never moves, so
// prefetching and advice are checked and have nothing to do; a prefetch keeps its place in the
// stream. Kernels see it as it is in CC mode too (mapped pinned memory they see as a copy).

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

constexpr CUdevice kHost = -1;  // CU_DEVICE_CPU
constexpr unsigned kAdviceMax = 6;

bool managed(Driver& d, uint64_t address, uint64_t bytes) {
  const auto range = d.host.find(address);
  return range && range->managed && bytes > 0 && bytes <= range->bytes - (address - range->address);
}

bool exists(Driver& d, CUdevice device) { return device == kHost || d.gpu_at(device) != nullptr; }

// The host, or a device; where on the host makes no difference.
CUdevice device_of(const CUmemLocation& location) {
  const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                    location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                    location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  if (host) return kHost;
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 ? location.id : -2;
}

CUresult prefetch(CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream,
                  DefaultStream mode) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    if (!managed(d, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(d, to)) return CUDA_ERROR_INVALID_DEVICE;
    return submit(d, s, NothingOperation{}, false);
  });
}

CUresult advise(CUdeviceptr address, size_t bytes, unsigned advice, CUdevice device) {
  return guarded([&](Driver& d) {
    if (advice == 0 || advice > kAdviceMax) return CUDA_ERROR_INVALID_VALUE;
    if (!managed(d, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    return exists(d, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult attach(CUstream stream, DefaultStream mode, CUdeviceptr address, size_t bytes,
                unsigned flags) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                       flags == CU_MEM_ATTACH_SINGLE;
    const auto range = d.host.find(address);
    const bool whole = range && range->managed && range->address == address &&
                       (bytes == 0 || bytes == range->bytes);
    if (!known || !whole) return CUDA_ERROR_INVALID_VALUE;
    return submit(d, s, NothingOperation{}, false);
  });
}

}  // namespace

EMU_API cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return in_context([&](Driver& d, Context& context) {
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (out == nullptr || bytes == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
    void* memory = d.host.allocate_managed(bytes, context.id(), config()->cc);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  });
}

EMU_TWINS(cuMemPrefetchAsync, _ptsz,
          (CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream),
          prefetch(address, bytes, to, stream, mode))
EMU_TWINS(cuMemPrefetchAsync_v2, _ptsz,
          (CUdeviceptr address, size_t bytes, CUmemLocation to, unsigned flags, CUstream stream),
          flags != 0 ? CUDA_ERROR_INVALID_VALUE
                     : prefetch(address, bytes, device_of(to), stream, mode))

EMU_API cuMemAdvise(CUdeviceptr address, size_t bytes, unsigned advice, CUdevice device) {
  return advise(address, bytes, advice, device);
}

EMU_API cuMemAdvise_v2(CUdeviceptr address, size_t bytes, unsigned advice, CUmemLocation location) {
  return advise(address, bytes, advice, device_of(location));
}

EMU_TWINS(cuStreamAttachMemAsync, _ptsz,
          (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
          attach(stream, mode, address, bytes, flags))
