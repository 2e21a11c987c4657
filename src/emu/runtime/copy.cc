// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills. The direction a program names decides which driver call is made; with
// cudaMemcpyDefault the driver finds out from the pointers.

#include "emu/runtime/copy_shape.h"
#include "emu/runtime/registry.h"
#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

CUresult copy(const Calls& c, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return c.cuMemcpyHtoD(address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return c.cuMemcpyDtoH(to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return c.cuMemcpyDtoD(address(to), address(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return c.cuMemcpy(address(to), address(from), bytes);
  }
  return kBadDirection;
}

CUresult copy_async(const Calls& c, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return c.cuMemcpyHtoDAsync(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return c.cuMemcpyDtoHAsync(to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return c.cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return c.cuMemcpyAsync(address(to), address(from), bytes, stream);
  }
  return kBadDirection;
}

struct Rows {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch;
  size_t width;
  size_t height;
};

cudaError_t copy_rows(Streams mode, const Rows& r, cudaMemcpyKind kind, bool async,
                      cudaStream_t stream) {
  return with_context(mode, [&](const Calls& c) -> CUresult {
    CUDA_MEMCPY2D shape{};
    if (!types_of(kind, shape.srcMemoryType, shape.dstMemoryType)) return kBadDirection;
    if (r.to_pitch < r.width || r.from_pitch < r.width) {
      return static_cast<CUresult>(cudaErrorInvalidPitchValue);
    }
    shape.srcHost = r.from;
    shape.srcDevice = address(r.from);
    shape.srcPitch = r.from_pitch;
    shape.dstHost = r.to;
    shape.dstDevice = address(r.to);
    shape.dstPitch = r.to_pitch;
    shape.WidthInBytes = r.width;
    shape.Height = r.height;
    return async ? c.cuMemcpy2DAsync(&shape, stream) : c.cuMemcpy2DUnaligned(&shape);
  });
}

template <typename Parameters>
cudaError_t copy_block(Streams mode, const Parameters* p, cudaMemcpyKind kind, bool async,
                       cudaStream_t stream) {
  return with_context(mode, [&](const Calls& c) -> CUresult {
    if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape;
    const CUresult read = block_shape(c, *p, kind, shape);
    if (read != CUDA_SUCCESS) return read;
    return async ? c.cuMemcpy3DAsync(&shape, stream) : c.cuMemcpy3D(&shape);
  });
}

}  // namespace

EMU_RUNTIME_TWINS(cudaMemcpy, _ptds,
                  (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
                  with_context(mode,
                               [&](const Calls& c) { return copy(c, to, from, bytes, kind); }))
EMU_RUNTIME_TWINS(cudaMemcpyAsync, _ptsz,
                  (void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return copy_async(c, to, from, bytes, kind, stream);
                  }))
// Addresses say which devices they belong to.
EMU_RUNTIME cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    return c.cuMemcpyDtoD(address(to), address(from), bytes);
  });
}
EMU_RUNTIME cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    return c.cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
  });
}
EMU_RUNTIME_TWINS(cudaMemcpy2D, _ptds,
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t height, cudaMemcpyKind kind),
                  copy_rows(mode, {to, to_pitch, from, from_pitch, width, height}, kind, false,
                            nullptr))
EMU_RUNTIME_TWINS(cudaMemcpy2DAsync, _ptsz,
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                  copy_rows(mode, {to, to_pitch, from, from_pitch, width, height}, kind, true,
                            stream))
EMU_RUNTIME_TWINS(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* p),
                  copy_block(mode, p, p != nullptr ? p->kind : cudaMemcpyDefault, false, nullptr))
EMU_RUNTIME_TWINS(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms* p, cudaStream_t stream),
                  copy_block(mode, p, p != nullptr ? p->kind : cudaMemcpyDefault, true, stream))
EMU_RUNTIME_TWINS(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms* p),
                  copy_block(mode, p, cudaMemcpyDeviceToDevice, false, nullptr))
EMU_RUNTIME_TWINS(cudaMemcpy3DPeerAsync, _ptsz,
                  (const cudaMemcpy3DPeerParms* p, cudaStream_t stream),
                  copy_block(mode, p, cudaMemcpyDeviceToDevice, true, stream))

EMU_RUNTIME_TWINS(cudaMemcpyToSymbol, _ptds,
                  (const void* symbol, const void* from, size_t bytes, size_t offset,
                   cudaMemcpyKind kind),
                  with_context(mode, [&](const Calls& c) {
                    void* to = nullptr;
                    const CUresult found = symbol_range(c, symbol, offset, bytes, to);
                    return found == CUDA_SUCCESS ? copy(c, to, from, bytes, kind) : found;
                  }))
EMU_RUNTIME_TWINS(cudaMemcpyFromSymbol, _ptds,
                  (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
                  with_context(mode, [&](const Calls& c) {
                    void* from = nullptr;
                    const CUresult found = symbol_range(c, symbol, offset, bytes, from);
                    return found == CUDA_SUCCESS ? copy(c, to, from, bytes, kind) : found;
                  }))
EMU_RUNTIME_TWINS(cudaMemcpyToSymbolAsync, _ptsz,
                  (const void* symbol, const void* from, size_t bytes, size_t offset,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    void* to = nullptr;
                    const CUresult found = symbol_range(c, symbol, offset, bytes, to);
                    return found == CUDA_SUCCESS ? copy_async(c, to, from, bytes, kind, stream)
                                                 : found;
                  }))
EMU_RUNTIME_TWINS(cudaMemcpyFromSymbolAsync, _ptsz,
                  (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    void* from = nullptr;
                    const CUresult found = symbol_range(c, symbol, offset, bytes, from);
                    return found == CUDA_SUCCESS ? copy_async(c, to, from, bytes, kind, stream)
                                                 : found;
                  }))

EMU_RUNTIME cudaGetSymbolAddress(void** memory, const void* symbol) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return symbol_range(c, symbol, 0, 0, *memory);
  });
}

EMU_RUNTIME cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    const Variable variable = find_variable(c, symbol);
    if (variable.address == nullptr) return static_cast<CUresult>(cudaErrorInvalidSymbol);
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = variable.bytes;
    return CUDA_SUCCESS;
  });
}

namespace {

unsigned char low_byte(int value) { return static_cast<unsigned char>(value); }

// A block is filled slice by slice; the driver has rows at most.
cudaError_t fill_block(Streams mode, const cudaPitchedPtr& memory, int value,
                       const cudaExtent& extent, bool async, cudaStream_t stream) {
  return with_context(mode, [&](const Calls& c) {
    if (extent.depth > 1 && extent.height > memory.ysize) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < extent.depth && result == CUDA_SUCCESS; ++z) {
      const CUdeviceptr slice = address(memory.ptr) + z * memory.pitch * memory.ysize;
      const unsigned char byte = low_byte(value);
      result = async ? c.cuMemsetD2D8Async(slice, memory.pitch, byte, extent.width, extent.height,
                                           stream)
                     : c.cuMemsetD2D8(slice, memory.pitch, byte, extent.width, extent.height);
    }
    return result;
  });
}

}  // namespace

EMU_RUNTIME_TWINS(cudaMemset, _ptds, (void* memory, int value, size_t bytes),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemsetD8(address(memory), low_byte(value), bytes);
                  }))
EMU_RUNTIME_TWINS(cudaMemsetAsync, _ptsz,
                  (void* memory, int value, size_t bytes, cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemsetD8Async(address(memory), low_byte(value), bytes, stream);
                  }))
EMU_RUNTIME_TWINS(cudaMemset2D, _ptds,
                  (void* memory, size_t pitch, int value, size_t width, size_t height),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemsetD2D8(address(memory), pitch, low_byte(value), width, height);
                  }))
EMU_RUNTIME_TWINS(cudaMemset2DAsync, _ptsz,
                  (void* memory, size_t pitch, int value, size_t width, size_t height,
                   cudaStream_t stream),
                  with_context(mode, [&](const Calls& c) {
                    return c.cuMemsetD2D8Async(address(memory), pitch, low_byte(value), width,
                                               height, stream);
                  }))
EMU_RUNTIME_TWINS(cudaMemset3D, _ptds, (cudaPitchedPtr memory, int value, cudaExtent extent),
                  fill_block(mode, memory, value, extent, false, nullptr))
EMU_RUNTIME_TWINS(cudaMemset3DAsync, _ptsz,
                  (cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream),
                  fill_block(mode, memory, value, extent, true, stream))
