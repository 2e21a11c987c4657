// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What an estimate rests on (estimate/rests_on.h), for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

#include "estimate/rests_on.h"

namespace sealane::cli {

constexpr const char* kLoss = "loss in %";
constexpr const char* kSlowdown = "slowdown";

struct Why {
  std::vector<std::string> policies;  // the rows, `off` first
  std::string what;                   // kLoss or kSlowdown
  std::vector<estimate::Leaning> leanings;
};

std::string why_text(const Why& why);
nlohmann::json why_json(const Why& why);

}  // namespace sealane::cli
