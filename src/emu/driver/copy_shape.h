// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads CUDA's descriptions of 2D and 3D copies.
#pragma once

#include "emu/driver/array.h"

namespace sealane::emu {

// One side of a copy as the program described it. A pitch or height of 0: as large as the copy.
struct DescribedSide {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  ArrayPosition at;  // bytes, rows, slices
  uint64_t pitch;
  uint64_t height;
};

// `copy` has its extents already.
inline CUresult read_side(const Driver& d, const DescribedSide& s, const CopyOperation& copy,
                          CopySide& out) {
  if (s.type == CU_MEMORYTYPE_ARRAY) return array_side(d, s.array, s.at, copy, out);
  const uint64_t pitch = s.pitch != 0 ? s.pitch : copy.width + s.at.x;
  const uint64_t slice = pitch * (s.height != 0 ? s.height : copy.height + s.at.y);
  const uint64_t start = s.at.z * slice + s.at.y * pitch + s.at.x;
  switch (s.type) {
    case CU_MEMORYTYPE_HOST:
      out = {reinterpret_cast<uint64_t>(s.host) + start, pitch, slice, Side::host};
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
      out = {s.device + start, pitch, slice, Side::device};
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED:
      out = {s.device + start, pitch, slice, Side::any};
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

inline CUresult read_sides(const Driver& d, const DescribedSide& from, const DescribedSide& to,
                           CopyOperation& out) {
  const CUresult read = read_side(d, from, out, out.from);
  return read == CUDA_SUCCESS ? read_side(d, to, out, out.to) : read;
}

inline CUresult read_shape(const Driver& d, const CUDA_MEMCPY2D& c, CopyOperation& out) {
  out.width = c.WidthInBytes;
  out.height = c.Height;
  out.depth = 1;
  return read_sides(d,
                    {c.srcMemoryType,
                     c.srcHost,
                     c.srcDevice,
                     c.srcArray,
                     {c.srcXInBytes, c.srcY, 0},
                     c.srcPitch,
                     c.Height},
                    {c.dstMemoryType,
                     c.dstHost,
                     c.dstDevice,
                     c.dstArray,
                     {c.dstXInBytes, c.dstY, 0},
                     c.dstPitch,
                     c.Height},
                    out);
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have the same members but for contexts.
template <typename Shape>
CUresult read_shape(const Driver& d, const Shape& c, CopyOperation& out) {
  out.width = c.WidthInBytes;
  out.height = c.Height;
  out.depth = c.Depth;
  return read_sides(d,
                    {c.srcMemoryType,
                     c.srcHost,
                     c.srcDevice,
                     c.srcArray,
                     {c.srcXInBytes, c.srcY, c.srcZ},
                     c.srcPitch,
                     c.srcHeight},
                    {c.dstMemoryType,
                     c.dstHost,
                     c.dstDevice,
                     c.dstArray,
                     {c.dstXInBytes, c.dstY, c.dstZ},
                     c.dstPitch,
                     c.dstHeight},
                    out);
}

// For a copy that is there already: a description that is refused leaves it as it was.
inline CUresult change_copy(const Driver& d, const CUDA_MEMCPY3D& described, CopyOperation& copy) {
  CopyOperation read;
  const CUresult result = read_shape(d, described, read);
  if (result == CUDA_SUCCESS) copy = read;
  return result;
}

}  // namespace sealane::emu
