// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane validate: what the model says next to what others have published.

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/draws_option.h"
#include "cli/output_option.h"
#include "cli/progress.h"
#include "cli/validate_blind.h"
#include "cli/validate_report.h"
#include "estimate/validation.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::string data;
  std::string blind;
  std::string json;
  uint32_t draws = estimate::kDraws;
};

Status validate(const Flags& flags) {
  if (!flags.blind.empty()) {
    if (!flags.data.empty()) return usage_error("--data means nothing to --blind");
    return validate_blind({flags.blind, flags.json, flags.draws});
  }
  if (!flags.json.empty()) {
    if (Status status = report::check_writable(flags.json); !status) return status;
  }
  estimate::ValidationOptions options{.data = flags.data, .progress = {}, .draws = flags.draws};
  Result<estimate::Validation> validation = estimate::Validation{};
  {
    const Progress progress;
    options.progress = [&](const std::string& what) { progress.show("simulating " + what); };
    validation = estimate::validate(options);
  }
  if (!validation) return validation.error();
  if (flags.json != "-") {
    if (Status status = report::write_file("-", validation_text(*validation)); !status)
      return status;
  }
  if (flags.json.empty()) return {};
  return report::write_json(flags.json, validation_json(*validation));
}

}  // namespace

void add_validate(CLI::App& root, Invocation& invocation) {
  auto* command =
      root.add_subcommand("validate", "Estimates next to what others have published and measured");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("--data", flags->data,
                   "Directory whose nsys/ has pairs NAME-off, NAME-on of Nsight CSV exports")
      ->type_name("DIR");
  command
      ->add_option("--blind", flags->blind,
                   "Directory with manifest.toml and measured.csv: foretold first, then compared")
      ->type_name("DIR");
  add_draws(*command, flags->draws);
  add_output(*command, "--json", flags->json, "Write the result to FILE, - is stdout");
  command->footer(
      "How the points are chosen, and what they rest on: docs/validation.md, which\n"
      "also says how to send us measurements (--blind).");
  command->callback(
      [flags, &invocation] { invocation.job = [flags] { return validate(*flags); }; });
}

}  // namespace sealane::cli
