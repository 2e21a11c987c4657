// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What standard output is: how wide, if somebody reads it there. And what goes to standard error.
#pragma once

#include <cstddef>
#include <string_view>

namespace sealane::report {

constexpr size_t kAnyWidth = 0;

// COLUMNS if that is set, else the terminal's width, else kAnyWidth: nothing is left out of a file.
size_t output_columns();

// The one way to standard error: in one piece, as it is. Where nobody can hear it (closed, full) it
// is lost, and nothing else: no command fails because it could not say something.
void say(std::string_view text);

}  // namespace sealane::report
