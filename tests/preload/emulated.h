// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the small CUDA programs of these tests ask of the emulated GPU beyond CUDA: kernels that are
// functions of the program, and things that happen on the bus.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <sealane_emu.h>

#include <string>
#include <vector>

#include "must.h"

inline void disturb(const char* what) {
  using Disturb = int(const char*);
  auto* const call = reinterpret_cast<Disturb*>(dlsym(RTLD_DEFAULT, "sealane_emu_disturb"));
  if (call == nullptr || call(what) != 0) fail("cannot disturb the emulated GPU");
}

// A kernel `name` whose parameters are `count` words of 64 bits.
inline CUfunction make_kernel(const char* name, sealane_emu_kernel_fn run, size_t count = 0) {
  using Register = int(const sealane_emu_kernel*);
  auto* const add = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "sealane_emu_register"));
  const std::vector<size_t> sizes(count, sizeof(uint64_t));
  const sealane_emu_kernel kernel{sizeof kernel, name, run, sizes.data(), sizes.size()};
  if (add == nullptr || add(&kernel) != 0) fail("cannot register a kernel");
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const std::string text = std::string(".version 8.0 .target sm_90 .entry ") + name + "() { ret; }";
  OK(cuModuleLoadData(&module, text.c_str()));
  OK(cuModuleGetFunction(&function, module, name));
  return function;
}

inline CUresult launch(CUfunction function, CUstream stream, std::vector<uint64_t> values = {}) {
  std::vector<void*> arguments;
  for (uint64_t& value : values) arguments.push_back(&value);
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments.data(), nullptr);
}
