// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels and __device__ variables of a program, as nvcc's start-up code registers them: by the
// address of a host-side stand-in. The driver learns of them at first use. Thread-safe; usable
// before main() and from exit handlers.
#pragma once

#include "emu/runtime/driver.h"

namespace sealane::emu::runtime {

// The kernel behind a host function's address, nullptr: never registered. The driver's refusal, if
// any, is in `result`.
CUfunction find_function(const Calls& calls, const void* host_function, CUresult& result);
const char* function_name(const void* host_function);

// The other way; a function of no host function's is itself.
void* host_function_of(CUfunction function);

struct Variable {
  void* address = nullptr;  // nullptr: no such variable, or no memory for it
  size_t bytes = 0;
};
Variable find_variable(const Calls& calls, const void* host_variable);

}  // namespace sealane::emu::runtime
