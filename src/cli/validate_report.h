// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane validate` found, for people and for programs; and with --blind, what somebody
// measured, foretold before it is read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "estimate/validation.h"

namespace sealane::cli {

constexpr const char* kPublishedTitle = "PUBLISHED measurements next to SIMULATED ones";

std::string validation_text(const estimate::Validation& validation,
                            const std::string& title = kPublishedTitle,
                            const std::string& truth = "published");
nlohmann::json validation_json(const estimate::Validation& validation);

struct BlindFlags {
  std::string directory;
  std::string json;  // empty: none
  uint32_t draws = 0;
};

// Writes predictions.csv into the directory, then opens the measurements, then writes verdict.txt.
// Without measurements it stops after the first. Predictions that are there and differ are never
// replaced: whoever has seen the values cannot foretell them again.
Status validate_blind(const BlindFlags& flags);

}  // namespace sealane::cli
