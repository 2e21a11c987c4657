// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which executable graphs leave host memory alone: those of kernels, fills of device memory and
// what orders them. They are as harmless to what was sealed ahead as launches are; any other
// may write host memory, or let the host write it, when its turn comes (live/serve/unsettled.h).
#pragma once

#include "emu/abi/cuda_types.h"

namespace sealane::preload {

// What was not looked at when it was made, or has been changed since, does not. Thread-safe.
bool leaves_host_alone(CUgraphExec graph);

}  // namespace sealane::preload
