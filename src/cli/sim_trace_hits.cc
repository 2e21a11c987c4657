// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "base/figures.h"
#include "cli/sim_tables.h"
#include "platform/reader.h"
#include "report/output.h"
#include "report/table.h"
#include "sim/recorded.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

constexpr std::string_view kTitle =
    "SIMULATED on {}: share of bulk copies to the device a slot was claimed for, in percent, from "
    "the first copy on; ready: share of their messages sealed by then. pipellm: the paper's rules "
    "in our pipeline.";
constexpr std::string_view kAlone =
    "Predictors alone: share of copies to the device that were among the next four guesses, in "
    "percent, from the first copy on. all: the tournament, and paper: the paper's rules, of bulk "
    "copies; the others of all copies.";

struct Named {
  std::string name;
  sim::RecordedHits hits;
};

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

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

std::string pipeline_table(const std::vector<Named>& rows) {
  report::Table table({{"trace", report::Align::left},
                       {"copies"},
                       {"speculate"},
                       {"ready"},
                       {"pipellm"},
                       {"ready"}});
  for (const Named& row : rows) {
    const auto hits = [](const sim::Foreseen& one) {
      return one.silent ? std::string("silent") : percent(one.hit_rate);
    };
    table.add_row({row.name, fmt::format("{}", row.hits.ours.copies), hits(row.hits.ours),
                   percent(row.hits.ours.ready_rate), hits(row.hits.pipellm),
                   percent(row.hits.pipellm.ready_rate)});
  }
  return table.text();
}

std::string predictors_table(const std::vector<Named>& rows) {
  std::vector<report::Table::Column> columns{{"trace", report::Align::left}, {"all"}, {"paper"}};
  for (const sim::PredictorRate& one : rows.front().hits.contestants) {
    columns.push_back({short_name(one.name)});
  }
  report::Table table(std::move(columns));
  for (const Named& row : rows) {
    std::vector<std::string> cells{row.name, percent(row.hits.tournament), percent(row.hits.paper)};
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

}  // namespace

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
  const std::string text = wrapped(fmt::format(fmt::runtime(kTitle), platform), 0) + "\n" +
                           pipeline_table(rows) + "\n" + wrapped(std::string(kAlone), 0) + "\n" +
                           predictors_table(rows);
  nlohmann::json all = {
      {"simulated", true}, {"platform", platform}, {"traces", nlohmann::json::array()}};
  for (const Named& row : rows) all["traces"].push_back(to_json(row));
  return report::write_results(text, json, all);
}

}  // namespace sealane::cli
