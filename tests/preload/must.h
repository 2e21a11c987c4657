// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How the small CUDA programs of these tests begin, and how they fail: with one line that says at
// what, and exit 1.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

[[noreturn]] inline void fail(const char* what, int code = 0) {
  std::printf("%s (%d)\n", what, code);
  std::exit(1);
}

inline void ok(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) fail(what, code);
}
#define OK(call) ok(call, #call)

// The first GPU, a stream, and memory.
struct OneDevice {
  explicit OneDevice(size_t bytes) {
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&memory, bytes));
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};
