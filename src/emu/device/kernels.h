// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels by name: host functions that programs, examples and tests register (abi/sealane_emu.h).
// A kernel nobody registered takes its modelled time and does nothing; that is said once per name.
//
// Thread-safe; never forgets a kernel, so pointers stay valid.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/abi/sealane_emu.h"

namespace sealane::emu {

struct Kernel {
  std::string name;
  sealane_emu_kernel_fn run = nullptr;
  std::vector<size_t> argument_bytes;
  bool known = false;  // registered; else a timed no-op with unknown parameters
};

bool register_kernel(const sealane_emu_kernel& kernel);
bool register_symbol(const char* name, uint64_t address, size_t bytes);

// Calls sealane_emu_kernels() of each shared object. False, with a line on stderr, if one cannot
// be loaded.
bool load_kernel_libraries(const std::string& colon_separated);

// The kernel of that name now; later registrations replace it.
std::shared_ptr<const Kernel> find_kernel(std::string_view name);

// The same, nullptr if nobody registered it.
std::shared_ptr<const Kernel> find_registered(std::string_view name);

// Where a parameter starts in a packed buffer.
size_t parameter_offset(const Kernel& kernel, size_t index);

struct Symbol {
  uint64_t address = 0;
  size_t bytes = 0;
};
Symbol find_symbol(std::string_view name);

// Arguments of one launch, copied when it was asked for.
class Arguments {
 public:
  // From an array of pointers, or from a packed buffer with natural alignment (`packed`).
  static Arguments copy(const Kernel& kernel, void* const* pointers);
  static Arguments copy_packed(const Kernel& kernel, const void* buffer, size_t bytes);

  const void* const* pointers() const { return pointers_.data(); }
  size_t count() const { return pointers_.size(); }

 private:
  std::shared_ptr<uint8_t[]> storage_;
  std::vector<const void*> pointers_;
};

}  // namespace sealane::emu
