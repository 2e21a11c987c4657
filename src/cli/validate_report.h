// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane validate` found, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "estimate/validation.h"

namespace sealane::cli {

constexpr const char* kPublishedTitle = "PUBLISHED measurements next to SIMULATED ones";

std::string validation_text(const estimate::Validation& validation,
                            const std::string& title = kPublishedTitle,
                            const std::string& truth = "published");
nlohmann::json validation_json(const estimate::Validation& validation);

}  // namespace sealane::cli
