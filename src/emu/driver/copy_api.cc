// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy calls: every name, one shape inside.

#include "emu/driver/api.h"
#include "emu/driver/copy_shape.h"

using namespace sealane::emu;

namespace {

uint64_t as_address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

constexpr bool kWait = true;
constexpr bool kReturn = false;

CUresult copy_flat(CUstream stream, DefaultStream mode, uint64_t to, Side to_side, uint64_t from,
                   Side from_side, size_t bytes, bool wait) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    return submit(d, s, CopyOperation::flat(to, to_side, from, from_side, bytes), wait);
  });
}

template <typename Shape>
CUresult copy_shaped(CUstream stream, DefaultStream mode, const Shape* shape, bool wait) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CopyOperation copy;
    const CUresult read = read_shape(d, *shape, copy);
    return read == CUDA_SUCCESS ? submit(d, s, copy, wait) : read;
  });
}

CUresult copy_peer(CUstream stream, DefaultStream mode, CUdeviceptr to, CUcontext to_context,
                   CUdeviceptr from, CUcontext from_context, size_t bytes, bool wait) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const auto there = d.contexts.find(to_context);
    const auto here = d.contexts.find(from_context);
    if (!there || !here) return CUDA_ERROR_INVALID_CONTEXT;
    return submit(d, s, CopyOperation::flat(to, Side::device, from, Side::device, bytes), wait);
  });
}

}  // namespace

EMU_TWINS(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
          copy_flat(nullptr, mode, to, Side::any, from, Side::any, bytes, kWait))
EMU_TWINS(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
          copy_flat(stream, mode, to, Side::any, from, Side::any, bytes, kReturn))
EMU_TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void* from, size_t bytes),
          copy_flat(nullptr, mode, to, Side::device, as_address(from), Side::host, bytes, kWait))
EMU_TWINS(cuMemcpyHtoDAsync_v2, _ptsz,
          (CUdeviceptr to, const void* from, size_t bytes, CUstream stream),
          copy_flat(stream, mode, to, Side::device, as_address(from), Side::host, bytes, kReturn))
EMU_TWINS(cuMemcpyDtoH_v2, _ptds, (void* to, CUdeviceptr from, size_t bytes),
          copy_flat(nullptr, mode, as_address(to), Side::host, from, Side::device, bytes, kWait))
EMU_TWINS(cuMemcpyDtoHAsync_v2, _ptsz, (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
          copy_flat(stream, mode, as_address(to), Side::host, from, Side::device, bytes, kReturn))
// Copies within a device do not make the caller wait.
EMU_TWINS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
          copy_flat(nullptr, mode, to, Side::device, from, Side::device, bytes, kReturn))
EMU_TWINS(cuMemcpyDtoDAsync_v2, _ptsz,
          (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
          copy_flat(stream, mode, to, Side::device, from, Side::device, bytes, kReturn))
EMU_TWINS(cuMemcpyPeer, _ptds,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
           size_t bytes),
          copy_peer(nullptr, mode, to, to_context, from, from_context, bytes, kReturn))
EMU_TWINS(cuMemcpyPeerAsync, _ptsz,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
           size_t bytes, CUstream stream),
          copy_peer(stream, mode, to, to_context, from, from_context, bytes, kReturn))
EMU_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* copy),
          copy_shaped(nullptr, mode, copy, kWait))
EMU_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* copy),
          copy_shaped(nullptr, mode, copy, kWait))
EMU_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* copy, CUstream stream),
          copy_shaped(stream, mode, copy, kReturn))
EMU_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* copy),
          copy_shaped(nullptr, mode, copy, kWait))
EMU_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* copy, CUstream stream),
          copy_shaped(stream, mode, copy, kReturn))
EMU_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* copy),
          copy_shaped(nullptr, mode, copy, kWait))
EMU_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* copy, CUstream stream),
          copy_shaped(stream, mode, copy, kReturn))
