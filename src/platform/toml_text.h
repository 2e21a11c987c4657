// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// TOML that anybody may have written. Whatever it is, there is a table or a usage error of one line
// that names file and line: not too large a file, nor keys in keys in keys, with which the parser
// and whoever walks or frees the table recurse.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace sealane {

// `file` is used in messages only.
Result<toml::table> parse_toml(std::string_view text, std::string_view file);

// `kind` is what it ought to be: "a platform file".
Result<std::string> read_toml(const std::string& path, std::string_view kind);

}  // namespace sealane
