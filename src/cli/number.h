// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A check for flags whose value is passed on as text, but must be a whole number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sealane::cli {

// For CLI11's check(): says what is wrong, or nothing.
std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most);

}  // namespace sealane::cli
