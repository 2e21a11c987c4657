// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the jobs of the emulator's test program share. A job does one thing, says what it saw, and
// returns 0 if it was right.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace probe {

using Jobs = std::map<std::string, int (*)()>;
Jobs quirk_jobs();  // probe_quirks.cc
Jobs time_jobs();   // probe_time.cc

using Bytes = std::vector<unsigned char>;

inline void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::printf("%s: %s\n", what, name);
  std::fflush(stdout);
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

inline bool expect(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}
#define EXPECT(condition) (expect(condition, #condition) ? 0 : 1)

inline void begin(int device = 0) {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
}

inline Bytes pattern(size_t size, unsigned seed) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525 + 1013904223;
    out[i] = static_cast<unsigned char>(seed >> 24);
  }
  return out;
}

inline CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  MUST(cuMemAlloc(&address, bytes));
  return address;
}

}  // namespace probe
