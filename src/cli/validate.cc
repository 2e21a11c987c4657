// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane validate: what the model says next to what others have published.

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/try.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/validate_report.h"
#include "estimate/validation.h"
#include "platform/reader.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::string data;
  std::string blind;
  std::string json;
  uint32_t draws = estimate::kDraws;
};

std::vector<std::string> inputs_of(const Flags& flags) {
  std::vector<std::string> inputs =
      flags.data.empty() ? std::vector<std::string>{} : estimate::validation_files(flags.data);
  for (const std::string& name : platform_names()) inputs.push_back(platform_file(name));
  return inputs;
}

Status validate(const Flags& flags) {
  if (!flags.blind.empty()) {
    if (!flags.data.empty()) return usage_error("--data means nothing to --blind");
    return validate_blind({flags.blind, flags.json, flags.draws});
  }
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, inputs_of(flags)));
  estimate::ValidationOptions options{.data = flags.data, .progress = {}, .draws = flags.draws};
  Result<estimate::Validation> validation = estimate::Validation{};
  {
    const Progress progress;
    options.progress = [&](const std::string& what) { progress.show("simulating " + what); };
    validation = estimate::validate(options);
  }
  if (!validation) return validation.error();
  return report::write_results(validation_text(*validation), flags.json,
                               validation_json(*validation));
}

}  // namespace

void add_validate(const Command& root) {
  const auto [command, flags] = add_command<Flags>(
      root, "validate", "Estimates next to what others have published and measured", &validate);
  command.value("--data", flags.data, "DIR",
                "Directory whose nsys/ has pairs NAME-off, NAME-on of Nsight CSV exports");
  command.value("--blind", flags.blind, "DIR",
                "Directory with manifest.toml and measured.csv: foretold first, then compared");
  command.draws(flags.draws);
  command.output("--json", flags.json, "Write the result to FILE, - is stdout");
  command.footer(
      "How the points are chosen, and what they rest on: docs/validation.md, which\n"
      "also says how to send us measurements (--blind).");
}

}  // namespace sealane::cli
