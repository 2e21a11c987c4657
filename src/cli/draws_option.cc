// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/draws_option.h"

#include <fmt/core.h>

#include <string>

#include "cli/number.h"
#include "estimate/interval.h"

namespace sealane::cli {
namespace {

constexpr uint32_t kMost = 1'000;

}  // namespace

void add_draws(CLI::App& command, uint32_t& to) {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "0" || whole_number(estimate::kDraws, kMost)(text).empty()) return {};
    return fmt::format("'{}' is neither 0 nor a number from {} to {}", text, estimate::kDraws,
                       kMost);
  };
  command
      .add_option("--draws", to,
                  "Runs with numbers drawn from their spreads, for the intervals [9]; 0: none")
      ->type_name("N")
      ->check(check);
}

}  // namespace sealane::cli
