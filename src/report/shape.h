// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a result file must look like to be drawn. Files may come from anywhere: what the page's
// script and the summary rely on is checked here, once, before either sees it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sealane::report {

enum class RunKind { unknown, estimate, validation, study, rows };

// By what is in it. The names are the page's.
RunKind kind_of(const nlohmann::json& run);
const char* to_string(RunKind kind);

// What was measured: "rows" or "results", whichever is there. Of a study or rows only.
const nlohmann::json& rows_of(const nlohmann::json& run);

// Empty if the run can be drawn, else what is wrong and where: "rows[3]: ranks is missing".
std::string problem_of(const nlohmann::json& run);

}  // namespace sealane::report
