/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other preloads beside the runtime: allocators that look for the one behind them at every call,
 * and somebody who stands in for dlopen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#ifdef BESIDE_OPENS
__attribute__((visibility("default"))) int beside_opened;
__attribute__((visibility("default"))) void* dlopen(const char* file, int flags) {
  void* (*const next)(const char*, int) =
      (void* (*)(const char*, int))dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.34");
  void* (*const older)(const char*, int) =
      (void* (*)(const char*, int))dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.2.5");
  ++beside_opened;
  void* volatile opened = (next != NULL ? next : older)(file, flags);
  return opened;
}
#else
extern void* __libc_malloc(size_t bytes);
static __thread volatile int asking __attribute__((tls_model("initial-exec")));
__attribute__((visibility("default"))) void* malloc(size_t bytes) {
#ifdef BESIDE_GUARDED
  if (asking) return __libc_malloc(bytes);
#endif
  asking = 1;
  void* (*const next)(size_t) = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  asking = 0;
  return next(bytes);
}
#endif
