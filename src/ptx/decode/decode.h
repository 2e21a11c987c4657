// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// From a module's text to a kernel that runs: everything it calls, its shared memory, its
// instructions. What the executor cannot do is refused here, with the instruction and its line.
//
// Stateless; may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "ptx/kernel.h"

namespace sealane::ptx {

// The address of a .global or .const variable on the device, nothing: there is none of that name.
using Addresses = std::function<std::optional<uint64_t>(std::string_view name)>;

Result<std::shared_ptr<const Kernel>> decode_kernel(std::shared_ptr<const Module> module,
                                                    std::string_view name,
                                                    const Addresses& addresses);

// The value a function's name has in device code.
uint64_t function_address(const Module& module, std::string_view name);  // 0: no such function

}  // namespace sealane::ptx
