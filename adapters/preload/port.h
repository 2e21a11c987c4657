// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The real driver as the runtime sees it.
#pragma once

#include "cuda_abi/cuda_types.h"
#include "serve/gpu_driver.h"

namespace sealane::preload {

void find_port();  // what it calls, before anybody needs it (table.h)
serve::GpuDriver& port();

inline serve::StreamHandle handle(CUstream stream) {
  return reinterpret_cast<serve::StreamHandle>(stream);
}
inline serve::ContextHandle handle(CUcontext context) {
  return reinterpret_cast<serve::ContextHandle>(context);
}

CUcontext current_context();
CUcontext primary_context(CUdevice device);     // nullptr: not active
bool is_capturing(serve::StreamHandle stream);  // also one that is broken and not ended yet

}  // namespace sealane::preload
