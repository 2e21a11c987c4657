// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads CUDA's descriptions of 2D and 3D copies. Arrays are not supported.
#pragma once

#include "emu/driver/operation.h"

namespace sealane::emu {

// One side of a CUDA_MEMCPY2D or 3D. False: an array, or a nonsense type.
inline bool side_of(CUmemorytype type, const void* host, CUdeviceptr device, uint64_t start,
                    uint64_t pitch, uint64_t slice, CopySide& out) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      out = {reinterpret_cast<uint64_t>(host) + start, pitch, slice, Side::host};
      return true;
    case CU_MEMORYTYPE_DEVICE:
      out = {device + start, pitch, slice, Side::device};
      return true;
    case CU_MEMORYTYPE_UNIFIED:
      out = {device + start, pitch, slice, Side::any};
      return true;
    default:
      return false;
  }
}

inline CUresult read_shape(const CUDA_MEMCPY2D& c, CopyOperation& out) {
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const uint64_t from_pitch = c.srcPitch != 0 ? c.srcPitch : c.WidthInBytes + c.srcXInBytes;
  const uint64_t to_pitch = c.dstPitch != 0 ? c.dstPitch : c.WidthInBytes + c.dstXInBytes;
  out.width = c.WidthInBytes;
  out.height = c.Height;
  const bool known =
      side_of(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcY * from_pitch + c.srcXInBytes,
              from_pitch, from_pitch * c.Height, out.from) &&
      side_of(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstY * to_pitch + c.dstXInBytes, to_pitch,
              to_pitch * c.Height, out.to);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have the same members but for contexts.
template <typename Shape>
CUresult read_shape(const Shape& c, CopyOperation& out) {
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const uint64_t from_pitch = c.srcPitch != 0 ? c.srcPitch : c.WidthInBytes + c.srcXInBytes;
  const uint64_t to_pitch = c.dstPitch != 0 ? c.dstPitch : c.WidthInBytes + c.dstXInBytes;
  const uint64_t from_slice = from_pitch * (c.srcHeight != 0 ? c.srcHeight : c.Height + c.srcY);
  const uint64_t to_slice = to_pitch * (c.dstHeight != 0 ? c.dstHeight : c.Height + c.dstY);
  out.width = c.WidthInBytes;
  out.height = c.Height;
  out.depth = c.Depth;
  const uint64_t from_start = c.srcZ * from_slice + c.srcY * from_pitch + c.srcXInBytes;
  const uint64_t to_start = c.dstZ * to_slice + c.dstY * to_pitch + c.dstXInBytes;
  const bool known =
      side_of(c.srcMemoryType, c.srcHost, c.srcDevice, from_start, from_pitch, from_slice,
              out.from) &&
      side_of(c.dstMemoryType, c.dstHost, c.dstDevice, to_start, to_pitch, to_slice, out.to);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace sealane::emu
