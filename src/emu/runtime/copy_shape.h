// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The runtime's ways to describe a copy, in the driver's words. Shared by copies and by copies as
// nodes of a graph. Pure but for symbol_range(), which may make a variable's memory.
#pragma once

#include "emu/runtime/registry.h"
#include "emu/runtime/runtime.h"

namespace sealane::emu::runtime {

constexpr auto kBadDirection = static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);

inline bool types_of(cudaMemcpyKind kind, CUmemorytype& from, CUmemorytype& to) {
  const bool host_source = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  const bool host_target = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  from = host_source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  to = host_target ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (kind == cudaMemcpyDefault) from = to = CU_MEMORYTYPE_UNIFIED;
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

inline CUarray handle_of(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}

// The side of a copy that is an array; a direction that calls it host memory is wrong.
inline bool take_array(CUmemorytype& type) {
  if (type == CU_MEMORYTYPE_HOST) return false;
  type = CU_MEMORYTYPE_ARRAY;
  return true;
}

inline size_t channel_bytes(const CUDA_ARRAY3D_DESCRIPTOR& a) {
  switch (a.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

inline size_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& a) {
  return channel_bytes(a) * a.NumChannels;
}

// The source, target and extent of both kinds of 3D parameters.
template <typename Parameters>
CUDA_MEMCPY3D shape_of(const Parameters& p) {
  CUDA_MEMCPY3D shape{};
  shape.srcXInBytes = p.srcPos.x;
  shape.srcY = p.srcPos.y;
  shape.srcZ = p.srcPos.z;
  shape.srcHost = p.srcPtr.ptr;
  shape.srcDevice = address(p.srcPtr.ptr);
  shape.srcPitch = p.srcPtr.pitch;
  shape.srcHeight = p.srcPtr.ysize;
  shape.dstXInBytes = p.dstPos.x;
  shape.dstY = p.dstPos.y;
  shape.dstZ = p.dstPos.z;
  shape.dstHost = p.dstPtr.ptr;
  shape.dstDevice = address(p.dstPtr.ptr);
  shape.dstPitch = p.dstPtr.pitch;
  shape.dstHeight = p.dstPtr.ysize;
  shape.WidthInBytes = p.extent.width;
  shape.Height = p.extent.height;
  shape.Depth = p.extent.depth;
  return shape;
}

// A flat copy as a block of one row.
inline CUresult flat_shape(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D& shape) {
  shape = {};
  if (!types_of(kind, shape.srcMemoryType, shape.dstMemoryType)) return kBadDirection;
  shape.srcHost = from;
  shape.srcDevice = address(from);
  shape.dstHost = to;
  shape.dstDevice = address(to);
  shape.srcPitch = shape.dstPitch = bytes;
  shape.WidthInBytes = bytes;
  shape.Height = shape.Depth = 1;
  return CUDA_SUCCESS;
}

// Where an array takes part, the extent and the position in it count its elements.
inline CUresult count_elements(const Calls& c, CUarray array, CUDA_MEMCPY3D& shape) {
  CUDA_ARRAY3D_DESCRIPTOR described{};
  const CUresult told = c.cuArray3DGetDescriptor(&described, array);
  if (told != CUDA_SUCCESS) return told;
  const size_t element = element_bytes(described);
  if (shape.srcArray != nullptr) shape.srcXInBytes *= element;
  if (shape.dstArray != nullptr) shape.dstXInBytes *= element;
  shape.WidthInBytes *= element;
  return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult block_shape(const Calls& c, const Parameters& p, cudaMemcpyKind kind,
                     CUDA_MEMCPY3D& shape) {
  shape = shape_of(p);
  if (!types_of(kind, shape.srcMemoryType, shape.dstMemoryType)) return kBadDirection;
  shape.srcArray = handle_of(p.srcArray);
  shape.dstArray = handle_of(p.dstArray);
  if (shape.srcArray != nullptr && !take_array(shape.srcMemoryType)) return kBadDirection;
  if (shape.dstArray != nullptr && !take_array(shape.dstMemoryType)) return kBadDirection;
  const CUarray array = shape.srcArray != nullptr ? shape.srcArray : shape.dstArray;
  return array != nullptr ? count_elements(c, array, shape) : CUDA_SUCCESS;
}

// The memory of a __device__ variable, or of a part of it.
inline CUresult symbol_range(const Calls& c, const void* symbol, size_t offset, size_t bytes,
                             void*& out) {
  const Variable variable = find_variable(c, symbol);
  if (variable.address == nullptr) return static_cast<CUresult>(cudaErrorInvalidSymbol);
  if (offset > variable.bytes || bytes > variable.bytes - offset) return CUDA_ERROR_INVALID_VALUE;
  out = static_cast<char*>(variable.address) + offset;
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu::runtime
