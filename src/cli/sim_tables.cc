// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sim_tables.h"

#include <fmt/core.h>

#include "base/figures.h"
#include "platform/reader.h"
#include "report/output.h"
#include "report/table.h"
#include "sim/compare.h"

namespace sealane::cli {
namespace {

std::string row_name(workload::Pattern pattern, bool lockstep) {
  return fmt::format("{}{}", workload::to_string(pattern), lockstep ? ", lockstep" : "");
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string hits_text(const std::vector<sim::HitRow>& rows) {
  report::Table table({{"pattern", report::Align::left},
                       {"copies"},
                       {"speculate"},
                       {"ready"},
                       {"pipellm"},
                       {"ready"}});
  for (const sim::HitRow& row : rows) {
    const auto hits = [](const sim::Foreseen& foreseen) {
      return foreseen.silent ? std::string("silent") : percent(foreseen.hit_rate);
    };
    table.add_row({row_name(row.pattern, row.lockstep), fmt::format("{}", row.ours.copies),
                   hits(row.ours), percent(row.ours.ready_rate), hits(row.pipellm),
                   percent(row.pipellm.ready_rate)});
  }
  return table.text();
}

std::string steps_text(const std::vector<sim::StepRow>& rows) {
  std::vector<report::Table::Column> columns{{"pattern", report::Align::left}};
  for (const sim::PolicyStep& step : sim::policy_steps()) {
    columns.push_back({std::string(step.name)});
  }
  report::Table table(std::move(columns));
  for (const sim::StepRow& row : rows) {
    std::vector<std::string> cells{row_name(row.pattern, row.lockstep)};
    for (const Duration elapsed : row.elapsed) {
      cells.push_back(fmt::format("{:.1f}", static_cast<double>(elapsed.count()) / 1e6));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

constexpr std::string_view kHitsTitle =
    "SIMULATED on {}: share of bulk copies to the device a slot was claimed for, in percent, "
    "after two periods; ready: share of their messages sealed by then. lockstep: the host waits "
    "for each kernel, else it runs ahead. pipellm: the paper's rules in our pipeline.";
constexpr std::string_view kStepsTitle =
    "SIMULATED on {}: ms for twenty periods after two. Each column adds one step: CC as shipped, "
    "a faster engine, callers that do not block, all workers seal, sealing ahead; sealane: what "
    "the runtime does, which seals ahead where that pays; off is without CC. Pages of pinned "
    "memory can be guarded (--enable default,pinned). lockstep: the host waits for each kernel, "
    "else it runs ahead.";

std::string headed(std::string_view title, const std::string& platform, const std::string& table) {
  return wrapped(fmt::format(fmt::runtime(title), platform), 0) + "\n" + table;
}

std::string separator(const std::string& before) { return before.empty() ? "" : ",\n "; }

}  // namespace

Status show_sim_table(SimTable table, const std::vector<std::string>& platforms,
                      const std::string& json) {
  if (Status status = report::check_writable(json); !status) return status;
  std::string text;
  std::string all;  // of JSON, by platform
  for (const std::string& name : platforms) {
    const auto platform = find_platform(name);
    if (!platform) return platform.error();
    if (!text.empty()) text += '\n';
    if (table == SimTable::hits) {
      const auto rows = sim::compare_hits(*platform);
      text += headed(kHitsTitle, name, hits_text(rows));
      all += separator(all) + sim::to_json(name, std::span<const sim::HitRow>(rows));
    } else {
      const auto rows = sim::compare_steps(*platform);
      text += headed(kStepsTitle, name, steps_text(rows));
      all += separator(all) + sim::to_json(name, std::span<const sim::StepRow>(rows));
    }
  }
  return report::write_both(text, json, "[" + all + "]\n");
}

}  // namespace sealane::cli
