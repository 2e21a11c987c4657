// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs that were recorded twice, with CC off and with CC on: the first through the simulator, the
// second as the truth.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "estimate/validation.h"
#include "platform/platform.h"

namespace sealane::estimate {

// Where they were recorded.
inline constexpr const char* kTracedPlatform = "h100-nvl-tdx";

// Every pair NAME-off, NAME-on in `data`/nsys, on that platform and in that draw.
Result<std::vector<Check>> check_traces(const std::string& data, const Platform& platform,
                                        const Draw& draw = {});

}  // namespace sealane::estimate
