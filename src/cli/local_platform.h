// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The platform `local`: this machine's cores, memory and its bandwidth, the rates of every engine
// that runs here and of copies, measured now, with the GPU and link of h100-tdx, which nobody can
// measure here.
#pragma once

#include "base/result.h"
#include "platform/platform.h"

namespace sealane::cli {

Result<Platform> measure_local_platform();

}  // namespace sealane::cli
