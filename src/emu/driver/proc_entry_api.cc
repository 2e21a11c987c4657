// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The entry points of cuGetProcAddress. Apart from the table, which declares every entry point
// without its parameters.

#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include "emu/driver/api.h"

extern "C" CUresult sealane_emu_get_proc(const char* name, void** out, int version,
                                         cuuint64_t flags);
extern "C" CUresult sealane_emu_get_proc_v2(const char* name, void** out, int version,
                                            cuuint64_t flags,
                                            CUdriverProcAddressQueryResult* status);

EMU_API cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  return sealane_emu_get_proc(name, out, version, flags);
}

EMU_API cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult* status) {
  return sealane_emu_get_proc_v2(name, out, version, flags, status);
}

namespace {

// Only NVIDIA's own runtime asks for those tables: one that a program or a library has inside, or
// that was loaded from a place of its own.
void say_whose_runtime(const void* caller) {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  if (said.test_and_set()) return;
  Dl_info place{};
  const bool known = dladdr(caller, &place) != 0 && place.dli_fname != nullptr;
  std::fprintf(stderr,
               "sealane emulated GPU: %s is or contains NVIDIA's CUDA runtime, which works with "
               "NVIDIA's driver only: its calls will fail. Link the shared runtime instead (nvcc "
               "--cudart shared), for which this GPU brings its own (docs/emulator.md)\n",
               known ? place.dli_fname : "something in this process");
}

}  // namespace

// NVIDIA's private tables, their runtime's self-test among them: never answered.
EMU_API cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  say_whose_runtime(__builtin_return_address(0));
  *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}
