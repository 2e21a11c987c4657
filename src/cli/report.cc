// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane report: one HTML page from the files that --json of other commands wrote.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/read_file.h"
#include "report/output.h"
#include "report/page.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::vector<std::string> runs;
  std::string out;
  std::string json;
};

Result<report::RunFile> read(const std::string& path) {
  SEALANE_LET(auto text, read_file(path));
  if (text.empty()) return usage_error(path + ": is empty");
  return report::RunFile{path, std::move(text)};
}

Status report(const Flags& flags) {
  SEALANE_TRY(report::check_outputs({{"--output", flags.out}, {"--json", flags.json}}, flags.runs));
  std::vector<report::RunFile> runs;
  for (const std::string& path : flags.runs) {
    SEALANE_LET(auto run, read(path));
    runs.push_back(std::move(run));
  }
  SEALANE_LET(const auto page, report::make_page(runs, SEALANE_VERSION));
  SEALANE_TRY(report::write_file(flags.out, page.html));
  nlohmann::json lines = nlohmann::json::array();
  for (const report::SummaryLine& one : page.summary) {
    lines.push_back({{"evidence", one.evidence}, {"text", one.text}});
  }
  const std::string text =
      to_text(page.summary) + fmt::format("The page: {}\n", visible(flags.out));
  return report::write_results(flags.out == "-" ? "" : text, flags.json,
                               {{"kind", "report"}, {"page", flags.out}, {"lines", lines}});
}

}  // namespace

void add_report(const Command& root) {
  const auto [command, flags] = add_command<Flags>(
      root, "report", "One page with tables and plots, from results of other commands", &report);
  command
      .value("runs", flags.runs, "RUN.json",
             "Files that --json of estimate, validate, bench or the training study wrote")
      .required();
  command.value("-o,--output", flags.out, "R.html", "The page, - is stdout", &check_output_name)
      .required();
  command.output("--json", flags.json, "Also write the summary as JSON; - is stdout, alone");
  command.footer(
      "Examples:\n"
      "  sealane estimate --workload vllm --model opt-30b --json vllm.json\n"
      "  sealane validate --json validate.json\n"
      "  sealane bench copy --json copy.json\n"
      "  sealane report vllm.json validate.json copy.json -o report.html");
}

}  // namespace sealane::cli
