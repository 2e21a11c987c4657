// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrays, which are the driver's, and the copies that name them by position. Every copy becomes
// one of the driver's 2D copies; a count of bytes that runs over the end of a row becomes up to
// three.

#include <algorithm>

#include "emu/runtime/copy_shape.h"

using namespace sealane::emu::runtime;

namespace {

constexpr auto kBadChannels = static_cast<CUresult>(cudaErrorInvalidChannelDescriptor);

// The driver's word for a channel of so many bits; 0: there is none.
int format_of(cudaChannelFormatKind kind, int bits) {
  const bool is_signed = kind == cudaChannelFormatKindSigned;
  if (kind == cudaChannelFormatKindFloat) {
    if (bits == 16) return CU_AD_FORMAT_HALF;
    return bits == 32 ? CU_AD_FORMAT_FLOAT : 0;
  }
  if (!is_signed && kind != cudaChannelFormatKindUnsigned) return 0;
  if (bits == 8) return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
  if (bits == 16) return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
  if (bits == 32) return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
  return 0;
}

// One, two or four channels of the same width.
bool read_channels(const cudaChannelFormatDesc& c, CUDA_ARRAY3D_DESCRIPTOR& out) {
  const int bits[] = {c.x, c.y, c.z, c.w};
  unsigned channels = 0;
  while (channels < 4 && bits[channels] != 0) ++channels;
  for (unsigned i = 0; i < 4; ++i) {
    if (bits[i] != (i < channels ? c.x : 0)) return false;
  }
  const int format = format_of(c.f, c.x);
  out.Format = static_cast<CUarray_format>(format);
  out.NumChannels = channels;
  return format != 0 && channels != 0 && channels != 3;
}

cudaChannelFormatDesc tell_channels(const CUDA_ARRAY3D_DESCRIPTOR& a) {
  const int bits = static_cast<int>(channel_bytes(a) * 8);
  cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
  if (a.Format >= CU_AD_FORMAT_SIGNED_INT8) kind = cudaChannelFormatKindSigned;
  if (a.Format >= CU_AD_FORMAT_HALF) kind = cudaChannelFormatKindFloat;
  return {bits, a.NumChannels > 1 ? bits : 0, a.NumChannels > 2 ? bits : 0,
          a.NumChannels > 2 ? bits : 0, kind};
}

cudaError_t create_array(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                         const cudaExtent& extent, unsigned flags) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    if (array == nullptr || channels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR described{};
    if (!read_channels(*channels, described)) return kBadChannels;
    described.Width = extent.width;
    described.Height = extent.height;
    described.Depth = extent.depth;
    described.Flags = flags;  // the runtime's values are the driver's
    return c.cuArray3DCreate(reinterpret_cast<CUarray*>(array), &described);
  });
}

// One side of a copy: memory with a pitch, or a place in an array.
struct Place {
  void* memory = nullptr;
  size_t pitch = 0;
  bool is_array = false;
  CUarray array = nullptr;
  size_t x = 0;
  size_t y = 0;

  static Place of(const void* memory, size_t pitch) {
    return {const_cast<void*>(memory), pitch, false, nullptr, 0, 0};
  }
  static Place in(cudaArray_const_t array, size_t x, size_t y) {
    return {nullptr, 0, true, handle_of(array), x, y};
  }
};

struct How {
  cudaMemcpyKind kind;
  bool async;
  cudaStream_t stream;
};

CUresult copy_part(const Calls& c, const Place& to, const Place& from, size_t width, size_t height,
                   const How& how) {
  CUDA_MEMCPY2D shape{};
  if (!types_of(how.kind, shape.srcMemoryType, shape.dstMemoryType)) return kBadDirection;
  if (from.is_array && !take_array(shape.srcMemoryType)) return kBadDirection;
  if (to.is_array && !take_array(shape.dstMemoryType)) return kBadDirection;
  const bool narrow = (!from.is_array && height > 1 && from.pitch < width) ||
                      (!to.is_array && height > 1 && to.pitch < width);
  if (narrow) return static_cast<CUresult>(cudaErrorInvalidPitchValue);
  shape.srcHost = from.memory;
  shape.srcDevice = address(from.memory);
  shape.srcPitch = from.pitch;
  shape.srcArray = from.array;
  shape.srcXInBytes = from.x;
  shape.srcY = from.y;
  shape.dstHost = to.memory;
  shape.dstDevice = address(to.memory);
  shape.dstPitch = to.pitch;
  shape.dstArray = to.array;
  shape.dstXInBytes = to.x;
  shape.dstY = to.y;
  shape.WidthInBytes = width;
  shape.Height = height;
  return how.async ? c.cuMemcpy2DAsync(&shape, how.stream) : c.cuMemcpy2DUnaligned(&shape);
}

cudaError_t copy_part(Streams mode, const Place& to, const Place& from, size_t width, size_t height,
                      const How& how) {
  return with_context(mode,
                      [&](const Calls& c) { return copy_part(c, to, from, width, height, how); });
}

// Bytes of a row, 0: no such array.
CUresult row_bytes(const Calls& c, CUarray array, size_t& out) {
  CUDA_ARRAY3D_DESCRIPTOR described{};
  const CUresult told = c.cuArray3DGetDescriptor(&described, array);
  if (told == CUDA_SUCCESS) out = described.Width * element_bytes(described);
  return told;
}

// `bytes` from a place on, over the ends of the array's rows: the rest of the first row, whole
// rows, the beginning of the last. The other side lies in one piece.
CUresult copy_bytes(const Calls& c, Place to, Place from, size_t bytes, const How& how) {
  Place& array = to.is_array ? to : from;
  Place& memory = to.is_array ? from : to;
  size_t row = 0;
  const CUresult told = row_bytes(c, array.array, row);
  if (told != CUDA_SUCCESS) return told;
  if (array.x > row) return CUDA_ERROR_INVALID_VALUE;
  while (bytes > 0) {
    const bool whole = array.x == 0 && bytes >= row;
    const size_t width = std::min(bytes, row - array.x);
    const size_t height = whole ? bytes / row : 1;
    memory.pitch = width;
    const CUresult copied = copy_part(c, to, from, width, height, how);
    if (copied != CUDA_SUCCESS) return copied;
    array.x = 0;
    array.y += height;
    memory.memory = static_cast<char*>(memory.memory) + width * height;
    bytes -= width * height;
  }
  return CUDA_SUCCESS;
}

cudaError_t copy_bytes(Streams mode, const Place& to, const Place& from, size_t bytes,
                       const How& how) {
  return with_context(mode, [&](const Calls& c) { return copy_bytes(c, to, from, bytes, how); });
}

// Between arrays: as far as both have the row, then on.
cudaError_t copy_bytes_between(Streams mode, Place to, Place from, size_t bytes, const How& how) {
  return with_context(mode, [&](const Calls& c) {
    size_t to_row = 0;
    size_t from_row = 0;
    CUresult result = row_bytes(c, to.array, to_row);
    if (result == CUDA_SUCCESS) result = row_bytes(c, from.array, from_row);
    if (result == CUDA_SUCCESS && (to.x > to_row || from.x > from_row)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    while (bytes > 0 && result == CUDA_SUCCESS) {
      const size_t width = std::min({bytes, to_row - to.x, from_row - from.x});
      if (width > 0) result = copy_part(c, to, from, width, 1, how);
      for (auto [place, row] : {std::pair(&to, to_row), std::pair(&from, from_row)}) {
        place->x += width;
        if (place->x < row) continue;
        place->x = 0;
        ++place->y;
      }
      bytes -= width;
    }
    return result;
  });
}

}  // namespace

EMU_RUNTIME cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, size_t width,
                            size_t height, unsigned flags) {
  return create_array(array, channels, {width, height, 0}, flags);
}

EMU_RUNTIME cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                              cudaExtent extent, unsigned flags) {
  return create_array(array, channels, extent, flags);
}

EMU_RUNTIME cudaFreeArray(cudaArray_t array) {
  if (array == nullptr) return cudaSuccess;
  return with_context(Streams::legacy,
                      [&](const Calls& c) { return c.cuArrayDestroy(handle_of(array)); });
}

EMU_RUNTIME cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  return with_context(Streams::legacy, [&](const Calls& c) {
    CUDA_ARRAY3D_DESCRIPTOR described{};
    const CUresult told = c.cuArray3DGetDescriptor(&described, handle_of(array));
    if (told != CUDA_SUCCESS) return told;
    if (channels != nullptr) *channels = tell_channels(described);
    if (extent != nullptr) *extent = {described.Width, described.Height, described.Depth};
    if (flags != nullptr) *flags = described.Flags;
    return told;
  });
}

EMU_RUNTIME cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
  if (channels == nullptr) return note(cudaErrorInvalidValue);
  return cudaArrayGetInfo(channels, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

EMU_RUNTIME_TWINS(cudaMemcpy2DToArray, _ptds,
                  (cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                   size_t height, cudaMemcpyKind kind),
                  copy_part(mode, Place::in(to, x, y), Place::of(from, pitch), width, height,
                            {kind, false, nullptr}))
EMU_RUNTIME_TWINS(cudaMemcpy2DToArrayAsync, _ptsz,
                  (cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                   size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                  copy_part(mode, Place::in(to, x, y), Place::of(from, pitch), width, height,
                            {kind, true, stream}))
EMU_RUNTIME_TWINS(cudaMemcpy2DFromArray, _ptds,
                  (void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                   size_t height, cudaMemcpyKind kind),
                  copy_part(mode, Place::of(to, pitch), Place::in(from, x, y), width, height,
                            {kind, false, nullptr}))
EMU_RUNTIME_TWINS(cudaMemcpy2DFromArrayAsync, _ptsz,
                  (void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                   size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                  copy_part(mode, Place::of(to, pitch), Place::in(from, x, y), width, height,
                            {kind, true, stream}))
EMU_RUNTIME_TWINS(cudaMemcpy2DArrayToArray, _ptds,
                  (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                   size_t from_y, size_t width, size_t height, cudaMemcpyKind kind),
                  copy_part(mode, Place::in(to, to_x, to_y), Place::in(from, from_x, from_y), width,
                            height, {kind, false, nullptr}))
EMU_RUNTIME_TWINS(cudaMemcpyToArray, _ptds,
                  (cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                   cudaMemcpyKind kind),
                  copy_bytes(mode, Place::in(to, x, y), Place::of(from, 0), bytes,
                             {kind, false, nullptr}))
EMU_RUNTIME_TWINS(cudaMemcpyToArrayAsync, _ptsz,
                  (cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  copy_bytes(mode, Place::in(to, x, y), Place::of(from, 0), bytes,
                             {kind, true, stream}))
EMU_RUNTIME_TWINS(cudaMemcpyFromArray, _ptds,
                  (void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                   cudaMemcpyKind kind),
                  copy_bytes(mode, Place::of(to, 0), Place::in(from, x, y), bytes,
                             {kind, false, nullptr}))
EMU_RUNTIME_TWINS(cudaMemcpyFromArrayAsync, _ptsz,
                  (void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  copy_bytes(mode, Place::of(to, 0), Place::in(from, x, y), bytes,
                             {kind, true, stream}))
EMU_RUNTIME_TWINS(cudaMemcpyArrayToArray, _ptds,
                  (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                   size_t from_y, size_t bytes, cudaMemcpyKind kind),
                  copy_bytes_between(mode, Place::in(to, to_x, to_y),
                                     Place::in(from, from_x, from_y), bytes,
                                     {kind, false, nullptr}))
