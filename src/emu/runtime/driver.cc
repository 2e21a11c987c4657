// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/runtime/driver.h"

#include <dlfcn.h>

namespace sealane::emu::runtime {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

void* library() {
  static void* const opened = dlopen("libcuda.so.1", RTLD_NOW);
  return opened;
}

GetProcAddress get_proc_address() {
  static const auto found = reinterpret_cast<GetProcAddress>(
      library() != nullptr ? dlsym(library(), "cuGetProcAddress_v2") : nullptr);
  return found;
}

bool find(const char* name, int version, cuuint64_t flags, void** out) {
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  return get_proc_address()(name, out, version, flags, &status) == CUDA_SUCCESS && *out != nullptr;
}

const Calls* load(cuuint64_t flags) {
  if (get_proc_address() == nullptr) return nullptr;
  auto* calls = new Calls;  // never deleted: programs call from exit handlers
  bool complete = true;
#define SEALANE_EMU_FIND(call, version) \
  complete = find(#call, version, flags, reinterpret_cast<void**>(&calls->call)) && complete;
  SEALANE_EMU_DRIVER_CALLS(SEALANE_EMU_FIND)
#undef SEALANE_EMU_FIND
  return complete ? calls : nullptr;
}

}  // namespace

const Calls* legacy_calls() {
  static const Calls* const calls = load(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  return calls;
}

const Calls* per_thread_calls() {
  static const Calls* const calls = load(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return calls;
}

CUresult find_call(const char* name, void** out, int version, unsigned long long flags,
                   CUdriverProcAddressQueryResult* status) {
  if (get_proc_address() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return get_proc_address()(name, out, version, flags, status);
}

void* find_symbol_of_driver(const char* name) {
  return library() != nullptr ? dlsym(library(), name) : nullptr;
}

}  // namespace sealane::emu::runtime
