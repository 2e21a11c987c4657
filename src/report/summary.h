// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of several commands in a few lines of text, sorted by what kind of evidence they are.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace sealane::report {

struct SummaryLine {
  std::string evidence;  // MEASURED, SIMULATED or PUBLISHED
  std::string text;
};

// The runs have the shape that report/shape.h asks for; what it lets be missing is left out.
std::vector<SummaryLine> summarize(const std::vector<nlohmann::json>& runs);

std::string to_text(const std::vector<SummaryLine>& lines);

}  // namespace sealane::report
