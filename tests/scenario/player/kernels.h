// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The player's device code, as functions of the emulated GPU (sealane_emu.h): a kernel that
// compares what arrived, one that writes fresh bytes, one that takes its time. load() once with a
// context, then launch() from any thread.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace sealane::test {

struct KernelArguments {
  uint64_t address;
  uint64_t bytes;
  uint64_t number;  // a digest, a seed, or a time in nanoseconds
  uint64_t operation;
};

enum class Kernel { check, scramble, timed };

class Kernels {
 public:
  CUresult load();
  CUresult launch(Kernel kernel, KernelArguments arguments, CUstream stream) const;

 private:
  CUfunction functions_[3] = {};
};

// The part of a modelled time that is really spent: what a runtime does meanwhile needs some.
void set_waits(unsigned percent);
void wait_part_of(uint64_t modelled_ns);

}  // namespace sealane::test
