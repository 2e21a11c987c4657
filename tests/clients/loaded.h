// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that load the driver themselves. Three ways to find its calls: dlsym for each;
// cuGetProcAddress for each; and what a static CUDA runtime does. C and C++.
#pragma once

#include <dlfcn.h>

#include "clients/copies.h"

typedef CUresult (*GetProcAddress)(const char* symbol, void** function, int version,
                                   cuuint64_t flags, CUdriverProcAddressQueryResult* status);

static inline void* load_driver(int flags) {
  void* const driver = dlopen("libcuda.so.1", flags);
  if (driver == NULL) client_fail(dlerror(), 0);
  return driver;
}

static inline void* find_symbol(void* driver, const char* name) {
  void* const found = dlsym(driver, name);
  if (found == NULL) client_fail(name, 0);
  return found;
}

// dlsym knows the symbols, not the names of the API: some have a version.
static inline int run_dlsym(void) {
  static const char* const kSymbols[kDriverCallCount] = {
      "cuInit",          "cuDeviceGet",          "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
      "cuMemAlloc_v2",   "cuMemFree_v2",         "cuMemHostAlloc",           "cuMemFreeHost",
      "cuStreamCreate",  "cuStreamDestroy_v2",   "cuStreamSynchronize",      "cuMemcpyHtoD_v2",
      "cuMemcpyDtoH_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",     "cuMemcpy",
      "cuMemcpyAsync",   "cuMemcpy2D_v2",        "cuArrayCreate_v2",         "cuArrayDestroy",
      "cuMemcpyHtoA_v2"};
  void* const driver = load_driver(RTLD_NOW | RTLD_LOCAL);
  void* found[kDriverCallCount];
  DriverCalls calls;
  for (int i = 0; i < kDriverCallCount; ++i) found[i] = find_symbol(driver, kSymbols[i]);
  memcpy(&calls, found, sizeof calls);
  return client_run(&calls);
}

// Everything through cuGetProcAddress, keyed by name, version and flags.
static inline int run_through(GetProcAddress get, int version, cuuint64_t flags) {
  static const char* const kNames[kDriverCallCount] = DRIVER_CALL_NAMES;
  void* found[kDriverCallCount];
  DriverCalls calls;
  for (int i = 0; i < kDriverCallCount; ++i) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CLIENT_TRY(get(kNames[i], &found[i], version, flags, &status));
    if (found[i] == NULL) client_fail(kNames[i], (int)status);
  }
  memcpy(&calls, found, sizeof calls);
  return client_run(&calls);
}

// The first version of cuGetProcAddress, which has no status.
static inline int run_proc_address_v1(void) {
  typedef CUresult (*GetProcAddressV1)(const char*, void**, int, cuuint64_t);
  static const char* const kNames[kDriverCallCount] = DRIVER_CALL_NAMES;
  void* const symbol = find_symbol(load_driver(RTLD_NOW | RTLD_LOCAL), "cuGetProcAddress");
  GetProcAddressV1 get;
  void* found[kDriverCallCount];
  DriverCalls calls;
  memcpy(&get, &symbol, sizeof get);
  for (int i = 0; i < kDriverCallCount; ++i) {
    CLIENT_TRY(get(kNames[i], &found[i], 11030, CU_GET_PROC_ADDRESS_DEFAULT));
    if (found[i] == NULL) client_fail(kNames[i], 0);
  }
  memcpy(&calls, found, sizeof calls);
  return client_run(&calls);
}

// What a static CUDA runtime does: opens the driver once, takes one symbol, and asks that for the
// rest, itself included.
static inline int run_as_static_runtime(int version, cuuint64_t flags) {
  void* const symbol = find_symbol(load_driver(RTLD_NOW | RTLD_LOCAL), "cuGetProcAddress_v2");
  GetProcAddress first;
  GetProcAddress get;
  void* again = NULL;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  memcpy(&first, &symbol, sizeof first);
  CLIENT_TRY(first("cuGetProcAddress", &again, version, flags, &status));
  if (again == NULL) client_fail("cuGetProcAddress", (int)status);
  memcpy(&get, &again, sizeof get);
  return run_through(get, version, flags);
}

// `kind` is what the program was called with.
static inline int run_loaded(const char* kind) {
  if (strcmp(kind, "dlsym") == 0) return run_dlsym();
  if (strcmp(kind, "proc-address-v1") == 0) return run_proc_address_v1();
  if (strcmp(kind, "static-12") == 0) {
    return run_as_static_runtime(12000, CU_GET_PROC_ADDRESS_DEFAULT);
  }
  if (strcmp(kind, "static-13") == 0) {
    return run_as_static_runtime(13000, CU_GET_PROC_ADDRESS_DEFAULT);
  }
  if (strcmp(kind, "static-per-thread") == 0) {
    return run_as_static_runtime(13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  }
  client_fail("unknown kind of client", 0);
  return 1;
}
