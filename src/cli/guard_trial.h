// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Page guards, tried on memory of each kind rather than guessed from versions.
#pragma once

#include <vector>

#include "cli/checkup.h"

namespace sealane::cli {

std::vector<Finding> try_page_guards();

}  // namespace sealane::cli
