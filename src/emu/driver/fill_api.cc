// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The memset calls. None of them makes the caller wait.

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

CUresult fill(CUstream stream, DefaultStream mode, CUdeviceptr to, size_t pitch, uint32_t value,
              unsigned element_bytes, size_t width, size_t height) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    if (width > UINT64_MAX / 8 || (height > 1 && pitch > UINT64_MAX / height)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return submit(d, s, FillOperation{to, pitch, value, element_bytes, width, height}, false);
  });
}

}  // namespace

#define FILLS(bits, type)                                                                       \
  EMU_TWINS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr to, type value, size_t count),            \
            fill(nullptr, mode, to, count * sizeof(type), value, sizeof(type), count, 1))       \
  EMU_TWINS(cuMemsetD##bits##Async, _ptsz,                                                      \
            (CUdeviceptr to, type value, size_t count, CUstream stream),                        \
            fill(stream, mode, to, count * sizeof(type), value, sizeof(type), count, 1))        \
  EMU_TWINS(cuMemsetD2D##bits##_v2, _ptds,                                                      \
            (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),            \
            fill(nullptr, mode, to, pitch, value, sizeof(type), width, height))                 \
  EMU_TWINS(                                                                                    \
      cuMemsetD2D##bits##Async, _ptsz,                                                          \
      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
      fill(stream, mode, to, pitch, value, sizeof(type), width, height))

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)

#undef FILLS
