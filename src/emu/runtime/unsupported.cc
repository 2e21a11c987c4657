// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every name of CUDA's runtime exists: what the other files do not define is defined here, weakly,
// so that a program which needs it starts, is told once on stderr what is missing, and gets an
// error code it can handle. Thread-safe. Includes no declaration of the runtime: the names are
// defined without their parameters.

#include <atomic>

namespace sealane::emu::runtime {

int unsupported(const char* name);  // runtime.cc

namespace {

int answer(std::atomic_flag& said, const char* name) {
  return unsupported(said.test_and_set() ? nullptr : name);
}

}  // namespace
}  // namespace sealane::emu::runtime

#define EMU_BOTH(name)                                                 \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    static std::atomic_flag said = ATOMIC_FLAG_INIT;                   \
    return ::sealane::emu::runtime::answer(said, #name);               \
  }
#if CUDART_VERSION < 13000
#define EMU_ONLY_12(name) EMU_BOTH(name)
#define EMU_ONLY_13(name)
#else
#define EMU_ONLY_12(name)
#define EMU_ONLY_13(name) EMU_BOTH(name)
#endif
#include "emu/runtime/names.def"
