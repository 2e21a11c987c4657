// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A file that somebody named, whole.
#pragma once

#include <string>

#include "base/result.h"

namespace sealane::cli {

// A usage error if it cannot be read, as a directory cannot, or is larger than any result or log.
Result<std::string> read_file(const std::string& path);

}  // namespace sealane::cli
