// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of a recorded program, by size and direction.
#pragma once

#include <string>

#include "base/result.h"
#include "bench/engine_report.h"

namespace sealane::cli {

Result<bench::CopySizes> sizes_of_trace(const std::string& file);

}  // namespace sealane::cli
