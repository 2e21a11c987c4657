// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies that others measured, one by one, with CC off and on. Pure but for reading platforms.
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

}  // namespace sealane::estimate
