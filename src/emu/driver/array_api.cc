// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// CUDA arrays: made, described, destroyed, and the copies that only one-dimensional ones have.

#include "emu/driver/api.h"
#include "emu/driver/array.h"

using namespace sealane::emu;

namespace {

constexpr uint64_t kArrayPitch = 512;

// 0: not a format we have, which are all but those of video and of compressed textures.
uint64_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

// What CUDA allows on a GPU of compute capability 9.0, by kind of array.
bool extents_allowed(const CUDA_ARRAY3D_DESCRIPTOR& a) {
  const bool layered = (a.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const bool cube = (a.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  if (a.Width == 0) return false;
  if (cube) {
    const bool faces = layered ? a.Depth > 0 && a.Depth % 6 == 0 && a.Depth <= 2046 : a.Depth == 6;
    return faces && a.Width == a.Height && a.Width <= 32768;
  }
  if (layered) return a.Depth > 0 && a.Depth <= 2048 && a.Width <= 32768 && a.Height <= 32768;
  if (a.Depth > 0) {
    return a.Height > 0 && a.Width <= 16384 && a.Height <= 16384 && a.Depth <= 16384;
  }
  return a.Width <= 131072 && a.Height <= 65536;
}

CUresult create_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& described) {
  return in_context([&](Driver& d, Context& context) {
    constexpr unsigned kPlain = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
    const unsigned channels = described.NumChannels;
    const bool channels_ok = channels == 1 || channels == 2 || channels == 4;
    if (out == nullptr || !channels_ok) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t element = channels * channel_bytes(described.Format);
    if (element == 0 || (described.Flags & ~kPlain) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (!extents_allowed(described)) return CUDA_ERROR_INVALID_VALUE;
    auto array = std::make_shared<ArrayObject>();
    array->described = described;
    array->owner = context.id();
    array->element_bytes = element;
    array->pitch = (array->row_bytes() + kArrayPitch - 1) & ~(kArrayPitch - 1);
    const uint64_t bytes = array->pitch * array->rows() * array->slices();
    const auto address = context.gpu().memory.allocate(bytes, context.id());
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    array->address = *address;
    *out = d.arrays.add(std::move(array));
    return CUDA_SUCCESS;
  });
}

template <typename Descriptor, typename Tell>
CUresult describe_array(Descriptor* out, CUarray handle, Tell&& tell) {
  return in_context([&](Driver& d, Context&) {
    const auto array = d.arrays.find(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = tell(array->described);
    return CUDA_SUCCESS;
  });
}

// `size` has room for `count` from `at` on.
bool has_room(uint64_t at, uint64_t count, uint64_t size) {
  return at <= size && count <= size - at;
}

// A side of a copy that has no rows: an address, or a place in a one-dimensional array.
struct LinearSide {
  uint64_t address = 0;
  Side side = Side::device;
  CUarray array = nullptr;
  size_t offset = 0;
};

CUresult read_linear(const Driver& d, const LinearSide& linear, const CopyOperation& copy,
                     CopySide& out) {
  if (linear.address != 0) {
    out = {linear.address, copy.width, copy.width, linear.side};
    return CUDA_SUCCESS;
  }
  const auto array = d.arrays.find(linear.array);
  const bool one = array && array->described.Height == 0 && array->described.Depth == 0;
  return one ? array_side(d, linear.array, {linear.offset, 0, 0}, copy, out)
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_linear(CUstream stream, DefaultStream mode, const LinearSide& to,
                     const LinearSide& from, size_t bytes, bool wait) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    CopyOperation copy;
    copy.width = bytes;
    CUresult read = read_linear(d, from, copy, copy.from);
    if (read == CUDA_SUCCESS) read = read_linear(d, to, copy, copy.to);
    return read == CUDA_SUCCESS ? submit(d, s, copy, wait) : read;
  });
}

LinearSide of_array(CUarray array, size_t offset) { return {0, Side::device, array, offset}; }
LinearSide of_device(CUdeviceptr address) { return {address, Side::device, nullptr, 0}; }
LinearSide of_host(const void* memory) {
  return {reinterpret_cast<uint64_t>(memory), Side::host, nullptr, 0};
}

}  // namespace

namespace sealane::emu {

CUresult array_side(const Driver& d, CUarray handle, const ArrayPosition& at,
                    const CopyOperation& copy, CopySide& out) {
  const auto array = d.arrays.find(handle);
  if (!array) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t element = array->element_bytes;
  const bool fits = at.x % element == 0 && copy.width % element == 0 &&
                    has_room(at.x, copy.width, array->row_bytes()) &&
                    has_room(at.y, copy.height, array->rows()) &&
                    has_room(at.z, copy.depth, array->slices());
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t slice = array->pitch * array->rows();
  const uint64_t offset = at.z * slice + at.y * array->pitch + at.x;
  out = {array->address + offset, array->pitch, slice, Side::device, handle, offset};
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu

EMU_API cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& a = *descriptor;
  return create_array(array, {a.Width, a.Height, 0, a.Format, a.NumChannels, 0});
}

EMU_API cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return descriptor != nullptr ? create_array(array, *descriptor) : CUDA_ERROR_INVALID_VALUE;
}

EMU_API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray array) {
  return describe_array(out, array, [](const CUDA_ARRAY3D_DESCRIPTOR& a) {
    return CUDA_ARRAY_DESCRIPTOR{a.Width, a.Height, a.Format, a.NumChannels};
  });
}

EMU_API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
  return describe_array(out, array, [](const CUDA_ARRAY3D_DESCRIPTOR& a) { return a; });
}

EMU_API cuArrayDestroy(CUarray handle) {
  return in_context([&](Driver& d, Context& context) {
    const CUresult allowed = allow_synchronising(d, nullptr);
    if (allowed != CUDA_SUCCESS) return allowed;
    const auto array = d.arrays.remove(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    context.synchronise();  // as a free of other memory does
    d.gpu_of(array->address)->memory.release(array->address);
    return CUDA_SUCCESS;
  });
}

EMU_TWINS(cuMemcpyHtoA_v2, _ptds, (CUarray to, size_t offset, const void* from, size_t bytes),
          copy_linear(nullptr, mode, of_array(to, offset), of_host(from), bytes, true))
EMU_TWINS(cuMemcpyHtoAAsync_v2, _ptsz,
          (CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream),
          copy_linear(stream, mode, of_array(to, offset), of_host(from), bytes, false))
EMU_TWINS(cuMemcpyAtoH_v2, _ptds, (void* to, CUarray from, size_t offset, size_t bytes),
          copy_linear(nullptr, mode, of_host(to), of_array(from, offset), bytes, true))
EMU_TWINS(cuMemcpyAtoHAsync_v2, _ptsz,
          (void* to, CUarray from, size_t offset, size_t bytes, CUstream stream),
          copy_linear(stream, mode, of_host(to), of_array(from, offset), bytes, false))
// Copies within a device do not make the caller wait.
EMU_TWINS(cuMemcpyDtoA_v2, _ptds, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
          copy_linear(nullptr, mode, of_array(to, offset), of_device(from), bytes, false))
EMU_TWINS(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
          copy_linear(nullptr, mode, of_device(to), of_array(from, offset), bytes, false))
EMU_TWINS(cuMemcpyAtoA_v2, _ptds,
          (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
          copy_linear(nullptr, mode, of_array(to, to_offset), of_array(from, from_offset), bytes,
                      false))
