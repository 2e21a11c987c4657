// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// From an image to a module's code, and whom to tell why not: one line on stderr, and the program,
// if it gave a buffer for messages.
//
// Thread-safe.
#pragma once

#include <string>

#include "cuda_abi/cuda_types.h"
#include "emu/driver/objects.h"

namespace sealane::emu {

// Options of a call that compiles: of them, the buffers for messages are used.
struct JitMessages {
  unsigned count = 0;
  const CUjit_option* options = nullptr;
  void** values = nullptr;

  void tell(const std::string& message) const;  // empty: all went well
};

// `what` it is about, and why not.
CUresult refuse(const char* what, const std::string& why, CUresult result, const JitMessages& jit);

CUresult read_code(const void* bytes, ModuleObject& module, const JitMessages& jit);

// For a kernel that has neither a host function nor PTX; told once per kernel.
CUresult refuse_machine_code(const std::string& kernel);

}  // namespace sealane::emu
