// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a manifest that was read: see blind_manifest.cc for the reading.

#include "estimate/blind.h"

#include <fmt/core.h>

#include <map>

#include "base/try.h"
#include "estimate/serving.h"
#include "platform/spread.h"
#include "workload/csv.h"

namespace sealane::estimate {
namespace {

double in_us(Duration time) { return static_cast<double>(time.count()) / 1e3; }

double copy_value(const BlindRun& run, const Platform& platform) {
  const Path& path = run.direction == Direction::to_device ? platform.to_device : platform.to_host;
  const Duration took = run.policy == "off"
                            ? open_copy_time(path, run.memory, run.copy_bytes)
                            : stock_copy_time(platform, path, run.memory, run.copy_bytes);
  if (run.metric == Metric::copy_time) return in_us(took);
  return static_cast<double>(run.copy_bytes) / in_us(took) / 1e3;
}

Foretold foretell_copy(const BlindRun& run, const Platform& platform, uint32_t draws) {
  Foretold result{.name = run.name,
                  .unit = run.metric == Metric::copy_time ? "us" : "GB/s",
                  .predicted = copy_value(run, platform)};
  std::vector<double> values;
  for (uint32_t i = 0; i < draws; ++i) {
    values.push_back(copy_value(run, drawn(platform, i, draws)));
  }
  result.range = four_in_five(result.predicted, std::move(values));
  return result;
}

Foretold value_of(const BlindRun& run, const ServingRow& row) {
  switch (run.metric) {
    case Metric::slowdown:
      return {run.name, "x", row.slowdown, row.slowdown_range};
    case Metric::time:
      return {
          run.name, "ms", 1e3 * row.time_s, {1e3 * row.time_range.low, 1e3 * row.time_range.high}};
    case Metric::throughput:
      return {run.name, std::string(run.serving->unit), row.throughput, row.throughput_range};
    default:
      return {run.name, "%", row.loss_pct, row.loss_range};
  }
}

Result<Foretold> foretell_run(const BlindRun& run, const Platform& platform, uint32_t draws) {
  ServingPlan plan;
  plan.platform = platform;
  plan.policies = {*find_serving_policy(run.policy)};
  plan.workers = run.workers;
  plan.seed = run.options.seed;
  plan.draws = draws;
  const auto make = [&](const Platform& where, const Draw& draw) {
    return workload::make_serving(*run.serving, *run.model, roofline_of(where),
                                  drawn(run.options, draw));
  };
  if (run.serving != nullptr) {
    SEALANE_TRY(make(platform, {}));
  }
  const auto rows = run.program
                        ? estimate_program(plan, *run.program)
                        : estimate_serving(plan, [&](const Platform& where, const Draw& draw) {
                            return *make(where, draw);
                          });
  if (!rows) return rows.error();
  return value_of(run, rows->back());
}

}  // namespace

Result<std::vector<Foretold>> foretell(const Blind& blind, uint32_t draws,
                                       const std::function<void(const std::string&)>& progress) {
  std::vector<Foretold> all;
  for (const BlindRun& run : blind.runs) {
    if (progress) progress(run.name);
    if (run.copy_bytes > 0) {
      all.push_back(foretell_copy(run, blind.platform, draws));
      continue;
    }
    SEALANE_LET(auto one, run.training != nullptr ? foretell_training(run, blind.platform, draws)
                                                  : foretell_run(run, blind.platform, draws));
    all.push_back(std::move(one));
  }
  return all;
}

std::string foretold_csv(std::span<const Foretold> foretold) {
  std::string text = "name,unit,predicted,low,high\n";
  for (const Foretold& each : foretold) {
    text += fmt::format("{},{},{:.6g},{:.6g},{:.6g}\n", each.name, each.unit, each.predicted,
                        each.range.low, each.range.high);
  }
  return text;
}

Result<Validation> compare(const Blind& blind, std::span<const Foretold> foretold,
                           std::istream& measured) {
  workload::CsvReader csv(measured, blind.measured);
  SEALANE_TRY(csv.read_header());
  const auto name = csv.column("name");
  const auto value = csv.column("value");
  const auto high = csv.optional_column("high");
  if (!name) return name.error();
  if (!value) return value.error();
  std::map<std::string, Interval> values;
  for (;;) {
    SEALANE_LET(const auto more, csv.next());
    if (!more) break;
    SEALANE_LET(const auto low, csv.number(*value));
    Interval range{low, low};
    if (high && !csv.empty(*high)) {
      SEALANE_LET(const auto end, csv.number(*high));
      if (end < low) return csv.error("the range ends before it begins");
      range.high = end;
    }
    if (!values.emplace(csv.text(*name), range).second) return csv.error("a name that was there");
  }
  Validation result;
  for (const Foretold& each : foretold) {
    const auto found = values.find(each.name);
    if (found == values.end()) {
      return usage_error(fmt::format("{}: no value of '{}'", blind.measured, each.name));
    }
    result.checks.push_back({.group = blind.platform.name,
                             .what = each.name,
                             .unit = each.unit,
                             .published_low = found->second.low,
                             .published_high = found->second.high,
                             .predicted = each.predicted,
                             .source = blind.sender,
                             .range = each.range});
    values.erase(found);
  }
  if (values.empty()) return result;
  return usage_error(fmt::format("{}: '{}' is not in the manifest, so nobody foretold it",
                                 blind.measured, values.begin()->first));
}

}  // namespace sealane::estimate
