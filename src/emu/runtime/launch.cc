// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernel launches: the <<<>>> of nvcc's programs and the calls it turns into.

#include <cstring>

#include "emu/runtime/registry.h"
#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// <<<>>> pushes, the generated stub pops at once: nested only by launches in argument lists.
constexpr int kNestingMax = 16;
struct Pushed {
  unsigned words[kNestingMax][6];
  size_t shared_bytes[kNestingMax];
  void* stream[kNestingMax];
  int depth;
};
thread_local Pushed pushed{};

// The runtime calls a bad shape by another name than the driver.
cudaError_t launch_error(CUresult result, const dim3& grid, const dim3& block) {
  const unsigned long long threads = 1ull * block.x * block.y * block.z;
  const unsigned long long blocks = 1ull * grid.x * grid.y * grid.z;
  const bool shape = threads == 0 || threads > 1024 || blocks == 0;
  if (result == CUDA_ERROR_INVALID_VALUE && shape) return cudaErrorInvalidConfiguration;
  return static_cast<cudaError_t>(result);
}

cudaError_t launch(Streams mode, const void* host_function, const Configuration& c,
                   void** arguments, bool cooperative) {
  return with_context(mode, [&](const Calls& calls) -> cudaError_t {
    CUresult result = CUDA_SUCCESS;
    CUfunction function = find_function(calls, host_function, result);
    // Not a host function: it may be a handle of cudaGetKernel(), which the driver knows.
    if (function == nullptr && function_name(host_function) != nullptr) {
      return static_cast<cudaError_t>(result);
    }
    const bool handle = function == nullptr;
    if (handle) function = static_cast<CUfunction>(const_cast<void*>(host_function));
    const auto shared = static_cast<unsigned>(c.shared_bytes);
    result =
        cooperative
            ? calls.cuLaunchCooperativeKernel(function, c.grid.x, c.grid.y, c.grid.z, c.block.x,
                                              c.block.y, c.block.z, shared, c.stream, arguments)
            : calls.cuLaunchKernel(function, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y,
                                   c.block.z, shared, c.stream, arguments, nullptr);
    if (handle && result == CUDA_ERROR_INVALID_HANDLE) return cudaErrorInvalidDeviceFunction;
    return launch_error(result, c.grid, c.block);
  });
}

cudaError_t launch_configured(Streams mode, const cudaLaunchConfig_t* c, const void* function,
                              void** arguments) {
  if (c == nullptr || (c->numAttrs > 0 && c->attrs == nullptr)) return note(cudaErrorInvalidValue);
  bool cooperative = false;
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    unsigned values[3];
    std::memcpy(values, &c->attrs[i].val, sizeof values);
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = values[0] != 0;
    const bool clusters = c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    if (clusters && uint64_t{values[0]} * values[1] * values[2] > 1) {
      return note(cudaErrorNotSupported);
    }
  }
  return launch(mode, function, {c->gridDim, c->blockDim, c->dynamicSmemBytes, c->stream},
                arguments, cooperative);
}

// work(const Calls&, CUfunction)
template <typename Work>
cudaError_t with_function(const void* host_function, Work&& work) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUresult result = CUDA_SUCCESS;
    CUfunction function = find_function(calls, host_function, result);
    return function != nullptr ? work(calls, function) : result;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned __cudaPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  Pushed& p = pushed;
  if (p.depth == kNestingMax) return 1;
  unsigned* words = p.words[p.depth];
  words[0] = grid.x, words[1] = grid.y, words[2] = grid.z;
  words[3] = block.x, words[4] = block.y, words[5] = block.z;
  p.shared_bytes[p.depth] = shared_bytes;
  p.stream[p.depth++] = stream;
  return 0;
}

EMU_RUNTIME __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  Pushed& p = pushed;
  if (p.depth == 0) return note(cudaErrorMissingConfiguration);
  const unsigned* words = p.words[--p.depth];
  *grid = dim3(words[0], words[1], words[2]);
  *block = dim3(words[3], words[4], words[5]);
  *shared_bytes = p.shared_bytes[p.depth];
  *static_cast<void**>(stream) = p.stream[p.depth];
  return cudaSuccess;
}

EMU_RUNTIME_TWINS(cudaLaunchKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, cudaStream_t stream),
                  launch(mode, function, {grid, block, shared_bytes, stream}, arguments, false))
EMU_RUNTIME_TWINS(cudaLaunchCooperativeKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, cudaStream_t stream),
                  launch(mode, function, {grid, block, shared_bytes, stream}, arguments, true))
EMU_RUNTIME_TWINS(cudaLaunchKernelExC, _ptsz,
                  (const cudaLaunchConfig_t* c, const void* function, void** arguments),
                  launch_configured(mode, c, function, arguments))

// nvcc 13's stubs ask for a handle once and launch by it. Ours is the host function itself.
EMU_RUNTIME __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  if (kernel == nullptr || function_name(host_function) == nullptr) {
    return note(cudaErrorInvalidDeviceFunction);
  }
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
  return cudaSuccess;
}

EMU_RUNTIME_TWINS(__cudaLaunchKernel, _ptsz,
                  (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, cudaStream_t stream),
                  launch(mode, kernel, {grid, block, shared_bytes, stream}, arguments, false))

EMU_RUNTIME cudaFuncGetAttributes(cudaFuncAttributes* out, const void* host_function) {
  return with_function(host_function, [&](const Calls& calls, CUfunction function) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = {};
    calls.cuFuncGetAttribute(&out->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                             function);
    int bytes = 0;
    calls.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    out->sharedSizeBytes = static_cast<size_t>(bytes);
    calls.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    out->localSizeBytes = static_cast<size_t>(bytes);
    calls.cuFuncGetAttribute(&out->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    calls.cuFuncGetAttribute(&out->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
    calls.cuFuncGetAttribute(&out->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
    return calls.cuFuncGetAttribute(&out->maxDynamicSharedSizeBytes,
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
  });
}

EMU_RUNTIME cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute,
                                 int value) {
  return with_function(host_function, [&](const Calls& calls, CUfunction function) {
    return calls.cuFuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value);
  });
}

EMU_RUNTIME cudaFuncSetCacheConfig(const void* host_function, cudaFuncCache) {
  return with_function(host_function, [](const Calls&, CUfunction) { return CUDA_SUCCESS; });
}

EMU_RUNTIME cudaFuncGetName(const char** name, const void* host_function) {
  if (name == nullptr) return note(cudaErrorInvalidValue);
  *name = function_name(host_function);
  return *name != nullptr ? cudaSuccess : note(cudaErrorInvalidDeviceFunction);
}

EMU_RUNTIME cudaGetKernel(cudaKernel_t* out, const void* host_function) {
  return with_function(host_function, [&](const Calls&, CUfunction function) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<cudaKernel_t>(function);  // our driver's kernels are its functions
    return CUDA_SUCCESS;
  });
}

EMU_RUNTIME cudaGetFuncBySymbol(cudaFunction_t* out, const void* host_function) {
  return with_function(host_function, [&](const Calls&, CUfunction function) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = function;
    return CUDA_SUCCESS;
  });
}

namespace {

cudaError_t occupancy(int* blocks, const void* host_function, int block_size, size_t shared_bytes) {
  return with_function(host_function, [&](const Calls& calls, CUfunction function) {
    return calls.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size,
                                                             shared_bytes);
  });
}

}  // namespace

EMU_RUNTIME cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_bytes) {
  return occupancy(blocks, function, block_size, shared_bytes);
}

EMU_RUNTIME cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int block_size,
                                                                   size_t shared_bytes, unsigned) {
  return occupancy(blocks, function, block_size, shared_bytes);
}
