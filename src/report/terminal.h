// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What standard output is: how wide, if somebody reads it there.
#pragma once

#include <cstddef>

namespace sealane::report {

constexpr size_t kAnyWidth = 0;

// COLUMNS if that is set, else the terminal's width, else kAnyWidth: nothing is left out of a file.
size_t output_columns();

}  // namespace sealane::report
