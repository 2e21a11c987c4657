// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// cuGetProcAddress: names, CUDA versions and default-stream flags to functions. The two .def files
// are the driver's only list of entry points: what is not in exports.def exists too, says once that
// it is not supported, and answers so.

#include <atomic>
#include <cstring>

#include "emu/driver/api.h"

using namespace sealane::emu;

#define EMU_EXPORT(name, version, symbol, per_thread) EMU_API symbol();
#include "emu/driver/exports.def"
#undef EMU_EXPORT

#define EMU_EXPORT(name, version, symbol, per_thread)      \
  EMU_API symbol() {                                       \
    static std::atomic_flag said = ATOMIC_FLAG_INIT;       \
    if (!said.test_and_set()) return unsupported(#symbol); \
    return CUDA_ERROR_NOT_SUPPORTED;                       \
  }
#include "emu/driver/unsupported.def"
#undef EMU_EXPORT

namespace {

struct Proc {
  const char* name;
  int version;
  bool per_thread;
  CUresult (*function)();
};

#define EMU_EXPORT(name, version, symbol, per_thread) {#name, version, per_thread, symbol},
constexpr Proc kProcs[] = {
#include "emu/driver/exports.def"
#include "emu/driver/unsupported.def"
};
#undef EMU_EXPORT

struct Found {
  const Proc* best = nullptr;
  bool name_known = false;
};

// The newest variant that a client of this CUDA version knows.
Found find(const char* name, int version, bool per_thread) {
  Found found;
  for (const Proc& proc : kProcs) {
    if (proc.per_thread != per_thread || std::strcmp(proc.name, name) != 0) continue;
    found.name_known = true;
    if (proc.version > version) continue;
    if (found.best == nullptr || proc.version > found.best->version) found.best = &proc;
  }
  return found;
}

CUresult get(const char* name, void** out, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult& status) {
  constexpr cuuint64_t kBoth =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (name == nullptr || out == nullptr || (flags & ~kBoth) != 0 || flags == kBoth) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Found found;
  if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) found = find(name, version, true);
  const bool twin_known = found.name_known;
  if (found.best == nullptr) found = find(name, version, false);
  *out = found.best != nullptr ? reinterpret_cast<void*>(found.best->function) : nullptr;
  status = CU_GET_PROC_ADDRESS_SUCCESS;
  if (found.best == nullptr) {
    status = found.name_known || twin_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found.best != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

// Called by the entry points (proc_entry_api.cc), which have their real signatures: this file
// declares every entry point without parameters.

extern "C" __attribute__((visibility("hidden"))) CUresult sealane_emu_get_proc(const char* name,
                                                                               void** out,
                                                                               int version,
                                                                               cuuint64_t flags) {
  CUdriverProcAddressQueryResult status;
  return get(name, out, version, flags, status);
}

extern "C" __attribute__((visibility("hidden"))) CUresult sealane_emu_get_proc_v2(
    const char* name, void** out, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult* status) {
  CUdriverProcAddressQueryResult ignored;
  const CUresult result = get(name, out, version, flags, status != nullptr ? *status : ignored);
  // Who asks for a status gets the bad news there.
  return result == CUDA_ERROR_NOT_FOUND && status != nullptr ? CUDA_SUCCESS : result;
}
