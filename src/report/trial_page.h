// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trial found, as one page: for a terminal, and as HTML that needs nothing but itself. Both
// are made from the JSON that `sealane trial` writes (docs/trial.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sealane::report {

std::string trial_text(const nlohmann::json& trial);  // 80 columns
std::string trial_html(const nlohmann::json& trial);

}  // namespace sealane::report
