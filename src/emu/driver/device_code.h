// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Device code in a context: a module's variables have addresses there, its kernels are decoded
// there when they are first launched, and a launch is a grid of the executor.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cuda_abi/cuda_types.h"
#include "emu/driver/context.h"
#include "ptx/exec/grid.h"
#include "ptx/text/module.h"

namespace sealane::emu {

class Driver;
struct LaunchOperation;

class LoadedCode {
 public:
  // Gives every variable memory of the context and its first value.
  static CUresult load(Context& context, std::shared_ptr<const ptx::Module> module,
                       std::shared_ptr<LoadedCode>& out);

  struct Place {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  const Place* variable(const std::string& name) const;

  // Decoded at first use. A refusal is an error at every try, and one line on stderr at the first
  // that is not `quiet`: who only asks about a kernel may never launch it.
  CUresult kernel(const std::string& name, std::shared_ptr<const ptx::Kernel>& out,
                  bool quiet = false);

 private:
  CUresult give_memory(Context& context);
  CUresult initialise(Context& context, const ptx::Variable& variable, const Place& place);

  std::shared_ptr<const ptx::Module> module_;
  std::map<std::string, Place, std::less<>> variables_;
  std::mutex mutex_;
  struct Decoded {
    std::shared_ptr<const ptx::Kernel> kernel;  // nullptr: refused
    std::string error;                          // to be told
  };
  std::map<std::string, Decoded> kernels_;
};

// What a launch costs the modelled GPU, counted while it ran.
struct GridResult {
  CUresult result = CUDA_SUCCESS;
  double operations = 0;
  double bytes = 0;
};
GridResult run_grid(Driver& d, Context& context, const LaunchOperation& launch);

// Returns when no kernel that runs uses what it found before the call: for memory that is the
// program's own and that it may take away now.
void forget_found_memory();

// Blocks of a kernel that an SM of the emulated GPU holds.
unsigned resident_blocks_per_sm(unsigned threads, unsigned shared_bytes);
constexpr unsigned kSms = 132;

}  // namespace sealane::emu
