// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every name of NVML exists: what the other files do not define is defined here, weakly, says once
// on stderr that it is missing and answers NOT_SUPPORTED. Thread-safe. Includes no declaration of
// NVML: the names are defined without their parameters.

#include <atomic>
#include <cstdio>

namespace {

constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED

int answer(std::atomic_flag& said, const char* name) {
  if (!said.test_and_set()) {
    std::fprintf(stderr, "sealane emulated GPU: %s is not supported (said once)\n", name);
  }
  return kNotSupported;
}

}  // namespace

#define EMU_NVML_NAME(name)                                            \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    static std::atomic_flag said = ATOMIC_FLAG_INIT;                   \
    return answer(said, #name);                                        \
  }
#include "emu/nvml/names.def"
