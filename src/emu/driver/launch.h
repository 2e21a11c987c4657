// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches: how one is made from what a program gave, and how it runs on a device thread.
#pragma once

#include "emu/driver/objects.h"

namespace sealane::emu {

// `asked_at`: when the program asked for it, for the modelled queue time.
CUresult run_kernel(Driver& d, Context& context, const LaunchOperation& launch, RealNs asked_at);

// Whether kernels of a context may use memory of a GPU at this address.
bool may_reach(Driver& d, const Context& context, const Gpu& gpu, uint64_t address);

// Checks a launch and copies its arguments (module_api.cc).
CUresult make_launch(Driver& d, CUfunction function, const unsigned grid[3],
                     const unsigned block[3], unsigned shared_bytes, void** arguments, void** extra,
                     LaunchOperation& out);

}  // namespace sealane::emu
