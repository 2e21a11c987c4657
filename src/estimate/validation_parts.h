// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a validation: copies that others measured one by one, with CC off and on; and runs that
// were recorded twice, with CC off, which goes through the simulator, and with CC on as the truth.
// Pure but for reading platforms and traces.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "estimate/validation.h"
#include "platform/platform.h"

namespace sealane::estimate {

// A platform by name, as it is or as it was drawn.
using PlatformOf = std::function<Result<Platform>(const std::string& name)>;

Result<std::vector<Check>> check_copies(const PlatformOf& platform_of);

// Where they were recorded.
inline constexpr const char* kTracedPlatform = "h100-nvl-tdx";

// Every pair NAME-off, NAME-on in `data`/nsys, on that platform and in that draw.
Result<std::vector<Check>> check_traces(const std::string& data, const Platform& platform,
                                        const Draw& draw = {});

}  // namespace sealane::estimate
