// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What nvcc would add to a runtime-API program for each __global__ function: a host symbol whose
// address stands for the kernel, made known to the runtime before main(). The bodies are never
// called: the examples launch with cudaLaunchKernel.

#include "kernels/image.h"
#include "kernels/kernels.h"
#include "support/fail.h"

#define SEALANE_DEFINE_STUB(type, name) \
  extern "C" void name(examples::type); \
  extern "C" void name(examples::type) { examples::fail("%s: not launched", #name); }
SEALANE_EXAMPLE_KERNELS(SEALANE_DEFINE_STUB)
#undef SEALANE_DEFINE_STUB

// nvcc's interface to the runtime library.
extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, void* thread_id,
                            void* block_id, void* block_dim, void* grid_dim, int* warp_size);
}

namespace {

struct FatBinaryWrapper {
  int magic;
  int version;
  const void* image;
  void* file;
};

// Runs while the program starts; the runtime outlives it, so nothing is taken back.
[[gnu::constructor]] void register_stubs() {
  static FatBinaryWrapper wrapper{0x466243b1, 1, examples::kernel_image(), nullptr};
  void** const handle = __cudaRegisterFatBinary(&wrapper);
#define SEALANE_REGISTER_STUB(type, name)                                                          \
  static char device_##name[] = #name;                                                             \
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(&::name), device_##name, #name, -1, \
                         nullptr, nullptr, nullptr, nullptr, nullptr);
  SEALANE_EXAMPLE_KERNELS(SEALANE_REGISTER_STUB)
#undef SEALANE_REGISTER_STUB
  __cudaRegisterFatBinaryEnd(handle);
}

}  // namespace
