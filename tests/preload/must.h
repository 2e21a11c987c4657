// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How the small CUDA programs of these tests fail: with one line that says at what, and exit 1.
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
