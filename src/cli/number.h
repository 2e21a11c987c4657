// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks for flags that are numbers: what is not one, NaN and infinity among them, is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sealane::cli {

// For CLI11's check(): says what is wrong, or nothing.
std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most);
std::function<std::string(const std::string&)> real_number(double least, double most);

}  // namespace sealane::cli
