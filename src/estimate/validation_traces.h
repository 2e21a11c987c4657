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

namespace sealane::estimate {

// Every pair NAME-off, NAME-on in `data`/nsys.
Result<std::vector<Check>> check_traces(const std::string& data);

}  // namespace sealane::estimate
