// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Files people asked for, whole or not at all.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "base/result.h"

namespace sealane::report {

// Writes to a temporary file beside `path` and renames it; "-" is standard output. An io error
// leaves nothing behind.
Status write_file(const std::string& path, const std::string& content);

// Fails early, before a long measurement, if `path` could not be written later.
Status check_writable(const std::string& path);

Status write_json(const std::string& path, const nlohmann::json& value);

}  // namespace sealane::report
