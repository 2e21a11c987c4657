// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane validate: what the model says next to what others have published.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "estimate/validation.h"
#include "report/output.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

using estimate::Check;
using nlohmann::json;

struct Flags {
  std::string data;
  std::string json;
};

std::string number(double value) {
  if (value == 0) return "0";
  const int digits = value >= 1000 ? 0 : (value >= 100 ? 1 : 2);
  return fmt::format("{:.{}f}", value, digits);
}

std::string published(const Check& check) {
  if (check.unit == "holds") return "holds";
  if (check.published_low == check.published_high) {
    return fmt::format("{} {}", number(check.published_low), check.unit);
  }
  return fmt::format("{} to {} {}", number(check.published_low), number(check.published_high),
                     check.unit);
}

std::string predicted(const Check& check) {
  if (check.unit == "holds") return check.predicted == 1 ? "holds" : "does not";
  return fmt::format("{} {}", number(check.predicted), check.unit);
}

std::string error(const Check& check) {
  if (check.unit == "holds") return check.predicted == 1 ? "-" : "wrong";
  if (check.error() == 0 && check.published_low != check.published_high) return "inside";
  return fmt::format("{:+.1f} {}", check.error(), check.in_points() ? "pts" : "%");
}

std::string describe(const estimate::Validation& validation) {
  report::Table table({{"what", report::Align::left},
                       {"published"},
                       {"predicted"},
                       {"error"},
                       {"", report::Align::left}});
  std::string group;
  for (const Check& check : validation.checks) {
    if (check.group != group && !group.empty()) table.add_rule();
    group = check.group;
    table.add_row({check.what, published(check), predicted(check), error(check),
                   check.calibrated ? "calibrated" : ""});
  }
  std::string text =
      "PUBLISHED measurements next to SIMULATED ones\n\n" + table.text() +
      "\n'calibrated': the model was set by this point, so it is no evidence. What a "
      "comparison assumes:\n";
  for (const Check& check : validation.checks) {
    if (!check.note.empty()) text += fmt::format("  {}: {}\n", check.what, check.note);
  }
  for (const std::string& note : validation.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

json to_json(const estimate::Validation& validation) {
  json checks = json::array();
  for (const Check& check : validation.checks) {
    checks.push_back({{"group", check.group},
                      {"what", check.what},
                      {"unit", check.unit},
                      {"published", {check.published_low, check.published_high}},
                      {"predicted", check.predicted},
                      {"error", check.error()},
                      {"error_unit", check.in_points() ? "points" : "%"},
                      {"calibrated", check.calibrated},
                      {"source", check.source},
                      {"note", check.note}});
  }
  return {{"kind", "validation"}, {"checks", std::move(checks)}, {"notes", validation.notes}};
}

Status validate(const Flags& flags) {
  if (!flags.json.empty()) {
    if (Status status = report::check_writable(flags.json); !status) return status;
  }
  estimate::ValidationOptions options{.data = flags.data, .progress = {}};
  Result<estimate::Validation> validation = estimate::Validation{};
  {
    const Progress progress;
    options.progress = [&](const std::string& what) { progress.show("simulating " + what); };
    validation = estimate::validate(options);
  }
  if (!validation) return validation.error();
  if (flags.json != "-") {
    if (Status status = report::write_file("-", describe(*validation)); !status) return status;
  }
  if (flags.json.empty()) return {};
  return report::write_json(flags.json, to_json(*validation));
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
  command->add_option("--json", flags->json, "Write the result to FILE, - is stdout")
      ->type_name("FILE");
  command->footer("How the points are chosen, and what they rest on: docs/validation.md.");
  command->callback(
      [flags, &invocation] { invocation.job = [flags] { return validate(*flags); }; });
}

}  // namespace sealane::cli
