// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Training in a manifest of blind.h: what its options mean, and what is foretold. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "estimate/blind.h"
#include "estimate/ddp.h"

namespace sealane::estimate {

constexpr std::string_view kTrainingWorkload = "ddp";

// What is wrong with the option, as an end of a sentence that begins with its name; nothing if it
// was taken.
std::optional<std::string> set_training_option(DdpOptions& options, std::string_view key,
                                               const std::variant<double, std::string>& value);

// `run` has a model of training.
Result<Foretold> foretell_training(const BlindRun& run, const Platform& platform, uint32_t draws);

}  // namespace sealane::estimate
