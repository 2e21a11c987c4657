// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trial found, in words: the verdict as a sentence, what to do, the line for production.
// Runs are written down as JSON and read again when a trial is resumed. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/trial_plan.h"
#include "cli/trial_text.h"

namespace sealane::cli {

nlohmann::json to_json(const TrialStep& step, const TrialOutcome& outcome);
Result<TrialOutcome> outcome_from(const nlohmann::json& run);

// "exit code 3", "signal 11 (Segmentation fault)", "no end within the time limit"
std::string describe_end(const TrialOutcome& outcome);

std::string headline(const TrialPlan& plan);
std::vector<std::string> advice(const TrialPlan& plan);

// As typed into a shell; empty: none.
std::string production_line(const TrialPlan& plan, const std::vector<std::string>& command);
std::string shell_words(const std::vector<std::string>& words);

// The page's JSON (report/trial_page.h). `machine` are doctor's findings.
nlohmann::json trial_json(const TrialPlan& plan, const std::vector<std::string>& command,
                          const nlohmann::json& runs, const ObservedPage& observed,
                          const nlohmann::json& machine);

}  // namespace sealane::cli
