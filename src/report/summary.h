// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of several commands in a few lines of text, sorted by what kind of evidence they are.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace sealane::report {

// Fields that are missing or of another type are left out: the files may come from anywhere.
std::string summarize(const std::vector<nlohmann::json>& runs);

}  // namespace sealane::report
