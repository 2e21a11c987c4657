// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Libraries of kernels a program loads itself, and what else is a word of the driver's: thin over
// it.

#include "emu/runtime/registry.h"
#include "emu/runtime/runtime.h"

using namespace sealane::emu::runtime;

#define CALL(name, ...) \
  with_context(Streams::legacy, [&](const Calls& calls) { return calls.name(__VA_ARGS__); })
#define OPTIONS                                                                                  \
  void *jit_options, void **jit_values, unsigned jit_count, void *options, void **option_values, \
      unsigned option_count
#define GIVEN                                                     \
  static_cast<CUjit_option*>(jit_options), jit_values, jit_count, \
      static_cast<CUlibraryOption*>(options), option_values, option_count

EMU_RUNTIME cudaLibraryLoadData(cudaLibrary_t* library, const void* image, OPTIONS) {
  return CALL(cuLibraryLoadData, library, image, GIVEN);
}

EMU_RUNTIME cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, OPTIONS) {
  return CALL(cuLibraryLoadFromFile, library, file, GIVEN);
}
#undef GIVEN
#undef OPTIONS

EMU_RUNTIME cudaLibraryUnload(cudaLibrary_t library) { return CALL(cuLibraryUnload, library); }

EMU_RUNTIME cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return CALL(cuLibraryGetKernel, kernel, library, name);
}

EMU_RUNTIME cudaLibraryGetGlobal(void** memory, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return CALL(cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr*>(memory), bytes, library, name);
}

EMU_RUNTIME cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  return CALL(cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value, kernel,
              device);
}

EMU_RUNTIME cudaFuncGetParamInfo(const void* host_function, size_t index, size_t* offset,
                                 size_t* bytes) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUresult result = CUDA_SUCCESS;
    CUfunction function = find_function(calls, host_function, result);
    return function != nullptr ? calls.cuFuncGetParamInfo(function, index, offset, bytes) : result;
  });
}

EMU_RUNTIME cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return CALL(cuMemPoolSetAccess, pool, reinterpret_cast<const CUmemAccessDesc*>(list), count);
}

EMU_RUNTIME cudaMemPoolGetAccess(int* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return CALL(cuMemPoolGetAccess, reinterpret_cast<CUmemAccess_flags*>(flags), pool,
              reinterpret_cast<CUmemLocation*>(location));
}
#undef CALL

EMU_RUNTIME cudaDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  return with_driver([&](const Calls& calls) {
    return calls.cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), from,
                                         to);
  });
}

// The first device that has what is asked for; a program that names nothing gets the first.
EMU_RUNTIME cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return with_driver([&](const Calls& calls) {
    if (device == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int count = 0;
    const CUresult counted = calls.cuDeviceGetCount(&count);
    *device = 0;
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp has;
      if (fill_properties(calls, has, i) != CUDA_SUCCESS) continue;
      if (has.major < wanted->major || has.totalGlobalMem < wanted->totalGlobalMem) continue;
      *device = i;
      break;
    }
    return counted;
  });
}

// Banks of shared memory are four bytes wide and cannot be changed, as on every GPU since Maxwell:
// asking is allowed.
EMU_RUNTIME cudaDeviceGetSharedMemConfig(int* config) {
  constexpr int kFourBytes = 1;
  return with_driver([&](const Calls&) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = kFourBytes;
    return CUDA_SUCCESS;
  });
}
EMU_RUNTIME cudaDeviceSetSharedMemConfig(int) {
  return with_driver([](const Calls&) { return CUDA_SUCCESS; });
}
EMU_RUNTIME cudaFuncSetSharedMemConfig(const void* host_function, int) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUresult result = CUDA_SUCCESS;
    return find_function(calls, host_function, result) != nullptr ? CUDA_SUCCESS : result;
  });
}

// All devices are alike here: an order of preference is checked and kept by nobody.
EMU_RUNTIME cudaSetValidDevices(int* devices, int count) {
  return with_driver([&](const Calls& calls) {
    if (count < 0 || (count > 0 && devices == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < count; ++i) {
      CUdevice found = 0;
      const CUresult known = calls.cuDeviceGet(&found, devices[i]);
      if (known != CUDA_SUCCESS) return known;
    }
    return CUDA_SUCCESS;
  });
}

extern "C" __attribute__((visibility("default"))) cudaChannelFormatDesc cudaCreateChannelDesc(
    int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

// A __device__ variable that is also the host's, of programs built for heterogeneous memory
// management: the host's is the variable.
extern "C" __attribute__((visibility("default"))) void __cudaRegisterHostVar(void**, const char*,
                                                                             char*, size_t) {}
extern "C" __attribute__((visibility("default"))) void __cudaRegisterUnifiedTable(void**, void*) {}

// NVIDIA's private tables: the driver refuses them.
EMU_RUNTIME cudaGetExportTable(const void** table, const cudaUUID_t* id) {
  return with_driver([&](const Calls&) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}
