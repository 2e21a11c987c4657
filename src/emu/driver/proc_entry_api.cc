// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The entry points of cuGetProcAddress. Apart from the table, which declares every entry point
// without its parameters.

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

// NVIDIA's private tables, their runtime's self-test among them: never answered.
EMU_API cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}
