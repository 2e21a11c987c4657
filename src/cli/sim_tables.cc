// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sim_tables.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "base/figures.h"
#include "base/text.h"
#include "platform/reader.h"
#include "report/output.h"
#include "report/table.h"
#include "sim/compare.h"
#include "sim/recorded.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

std::string row_name(workload::Pattern pattern, bool lockstep) {
  return fmt::format("{}{}", workload::to_string(pattern), lockstep ? ", lockstep" : "");
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

report::Table hits_table(const char* of) {
  return report::Table(
      {{of, report::Align::left}, {"copies"}, {"speculate"}, {"ready"}, {"pipellm"}, {"ready"}});
}

void add_hits(report::Table& table, const std::string& name, const sim::Foreseen& ours,
              const sim::Foreseen& pipellm) {
  const auto hits = [](const sim::Foreseen& foreseen) {
    return foreseen.silent ? std::string("silent") : percent(foreseen.hit_rate);
  };
  table.add_row({name, fmt::format("{}", ours.copies), hits(ours), percent(ours.ready_rate),
                 hits(pipellm), percent(pipellm.ready_rate)});
}

std::string hits_text(const std::vector<sim::HitRow>& rows) {
  report::Table table = hits_table("pattern");
  for (const sim::HitRow& row : rows) {
    add_hits(table, row_name(row.pattern, row.lockstep), row.ours, row.pipellm);
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

// A policy that beats a machine without CC mode needs a word.
std::string below_off(const std::vector<sim::StepRow>& rows) {
  constexpr int64_t kNoisePct = 2;
  std::string names;
  for (const sim::StepRow& row : rows) {
    const auto beats_off = [off = row.elapsed.back()](Duration elapsed) {
      return elapsed * 100 < off * (100 - kNoisePct);
    };
    if (std::none_of(row.elapsed.begin(), row.elapsed.end(), beats_off)) continue;
    names += (names.empty() ? "" : "; ") + row_name(row.pattern, row.lockstep);
  }
  if (names.empty()) return {};
  return "\n" +
         wrapped("Less than off: " + names +
                     ". The runtime carries copies in the order they were asked for, small ones "
                     "together. Without CC they take the link as their streams become ready, and "
                     "small copies wait behind a bulk copy that was asked for later. It is the "
                     "order that gains, not CC mode: a program that keeps its bulk copies back "
                     "has the same gain without it.",
                 0);
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

constexpr std::string_view kTracesTitle =
    "SIMULATED on {}: share of bulk copies to the device a slot was claimed for, in percent, from "
    "the first copy on; ready: share of their messages sealed by then. pipellm: the paper's rules "
    "in our pipeline.";
constexpr std::string_view kAloneTitle =
    "Predictors alone: share of copies to the device that were among the next four guesses, in "
    "percent, from the first copy on. all: the tournament, and paper: the paper's rules, of bulk "
    "copies; the others of all copies.";

struct Named {
  std::string name;
  sim::RecordedHits hits;
};

std::string headed(std::string_view title, const std::string& platform, const std::string& table) {
  return wrapped(fmt::format(fmt::runtime(title), visible(platform)), 0) + "\n" + table;
}

// So that all fit into a line.
std::string short_name(std::string_view predictor) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"repetition", "rep"},     {"repetition-by-size", "size"}, {"interleaved", "inter"},
      {"lifo-grouped", "group"}, {"sequential", "seq"},          {"markov", "mark"}};
  for (const auto& [full, brief] : kShort) {
    if (full == predictor) return std::string(brief);
  }
  return std::string(predictor);
}

std::string predictors_table(const std::vector<Named>& rows) {
  std::vector<report::Table::Column> columns{{"trace", report::Align::left}, {"all"}, {"paper"}};
  for (const sim::PredictorRate& one : rows.front().hits.contestants) {
    columns.push_back({short_name(one.name)});
  }
  report::Table table(std::move(columns));
  for (const Named& row : rows) {
    std::vector<std::string> cells{visible(row.name), percent(row.hits.tournament),
                                   percent(row.hits.paper)};
    for (const sim::PredictorRate& one : row.hits.contestants) {
      cells.push_back(fmt::format("{:.0f}", 100 * one.rate));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

nlohmann::json to_json(const Named& row) {
  const auto foreseen = [](const sim::Foreseen& one) {
    return nlohmann::json{
        {"hit_rate", one.hit_rate}, {"ready_rate", one.ready_rate}, {"silent", one.silent}};
  };
  nlohmann::json out = {{"trace", row.name},
                        {"copies", row.hits.ours.copies},
                        {"speculate", foreseen(row.hits.ours)},
                        {"pipellm", foreseen(row.hits.pipellm)},
                        {"tournament", row.hits.tournament},
                        {"paper", row.hits.paper},
                        {"predictors", nlohmann::json::object()}};
  for (const sim::PredictorRate& one : row.hits.contestants) {
    out["predictors"][std::string(one.name)] = one.rate;
  }
  return out;
}

std::string separator(const std::string& before) { return before.empty() ? "" : ",\n "; }

}  // namespace

Status show_sim_table(SimTable table, const std::vector<std::string>& platforms,
                      const std::string& json) {
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
      text += headed(kStepsTitle, name, steps_text(rows)) + below_off(rows);
      all += separator(all) + sim::to_json(name, std::span<const sim::StepRow>(rows));
    }
  }
  return report::write_both(text, json, "[" + all + "]\n");
}

Status show_trace_hits(const std::vector<std::string>& traces, const std::string& platform,
                       const std::string& json) {
  const auto machine = find_platform(platform);
  if (!machine) return machine.error();
  std::vector<Named> rows;
  for (const std::string& path : traces) {
    const auto program = workload::load_trace(path);
    if (!program) return program.error();
    rows.push_back(
        {std::filesystem::path(path).stem().string(), sim::measure_hits(*program, *machine)});
  }
  report::Table table = hits_table("trace");
  for (const Named& row : rows) add_hits(table, visible(row.name), row.hits.ours, row.hits.pipellm);
  const std::string text = headed(kTracesTitle, platform, table.text()) + "\n" +
                           headed(kAloneTitle, platform, predictors_table(rows));
  nlohmann::json all = {
      {"simulated", true}, {"platform", platform}, {"traces", nlohmann::json::array()}};
  for (const Named& row : rows) all["traces"].push_back(to_json(row));
  return report::write_results(text, json, all);
}

}  // namespace sealane::cli
