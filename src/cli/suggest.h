// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean …": the nearest of the names there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sealane::cli {

// Number of letters to insert, delete, replace or swap with a neighbour to get from one to the
// other.
size_t edit_distance(std::string_view from, std::string_view to);

// "; did you mean 'doctor'?" or, if nothing is near, "; there are: a, b, c".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace sealane::cli
