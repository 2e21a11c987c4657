// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Cubins: ELF files of device code. Machine code cannot run here, but a cubin may carry the PTX it
// was made of (nvcc -G or -lineinfo), and what the emulated linker makes is a cubin with nothing
// else in it.
//
// Stateless; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealane::emu {

bool is_cubin(const char* bytes);
uint64_t cubin_bytes(const char* bytes);  // what its header says

// The PTX in it, one text of each object it was linked from. Empty: none.
std::vector<std::string> ptx_of_cubin(const char* bytes);

std::string make_cubin(const std::vector<std::string>& texts);

}  // namespace sealane::emu
