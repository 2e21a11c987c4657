// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The SEALANE_* variables there are.
#pragma once

#include <string>
#include <vector>

namespace sealane::cli {

// One warning line for every SEALANE_* variable that nothing reads: most likely a typing error.
std::vector<std::string> unknown_environment();

}  // namespace sealane::cli
