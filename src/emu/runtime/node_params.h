// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of graph nodes, from the runtime's structures to the driver's. Pure but for finding a
// kernel, which may load its module.
#pragma once

#include "emu/runtime/registry.h"
#include "emu/runtime/runtime.h"

namespace sealane::emu::runtime {

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));

// Same layout under another name.
inline const CUDA_MEMSET_NODE_PARAMS* driver_params(const cudaMemsetParams* params) {
  return reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(params);
}
inline const CUDA_HOST_NODE_PARAMS* driver_params(const cudaHostNodeParams* params) {
  return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params);
}

// The kernel may also be a handle of cudaGetFuncBySymbol() or cudaGetKernel(), which the driver
// knows.
inline CUresult kernel_params(const Calls& calls, const cudaKernelNodeParams* params,
                              CUDA_KERNEL_NODE_PARAMS& out) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  CUfunction function = find_function(calls, params->func, result);
  if (function == nullptr) {
    if (function_name(params->func) != nullptr) return result;
    function = static_cast<CUfunction>(params->func);
  }
  out = {};
  out.func = function;
  out.gridDimX = params->gridDim.x, out.gridDimY = params->gridDim.y;
  out.gridDimZ = params->gridDim.z;
  out.blockDimX = params->blockDim.x, out.blockDimY = params->blockDim.y;
  out.blockDimZ = params->blockDim.z;
  out.sharedMemBytes = params->sharedMemBytes;
  out.kernelParams = params->kernelParams;
  out.extra = params->extra;
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu::runtime
