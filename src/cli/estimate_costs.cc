// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_costs.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <vector>

#include "base/figures.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

using estimate::Prices;
using nlohmann::json;
using report::Align;
using report::Table;

// What is paid for: a number of units that gives readable prices.
struct Unit {
  std::string name;
  double units = 1;
};

Unit unit_of(const EstimateSubject& subject) {
  if (subject.unit.empty()) return {"run", 1};
  if (subject.unit == "tokens/s") return {"million tokens", 1e6};
  if (subject.unit == "requests/s") return {"thousand requests", 1e3};
  if (subject.unit == "steps/s") return {"thousand steps", 1e3};
  return {"GB", 1};
}

struct Cost {
  std::string policy;
  double gpus = 0;
  double cores = 0;
  double total() const { return gpus + cores; }
};

std::vector<Cost> costs_of(const EstimateSubject& subject, const Prices& prices,
                           std::span<const estimate::ServingRow> rows) {
  std::vector<Cost> costs;
  for (const auto& row : rows) {
    const double seconds =
        row.throughput > 0 ? unit_of(subject).units / row.throughput : row.time_s;
    costs.push_back(
        {row.policy, prices.of(seconds, 1, 0), prices.of(seconds, 0, row.worker_cores)});
  }
  return costs;
}

std::vector<Cost> costs_of(const Prices& prices, const estimate::DdpOptions& options,
                           std::span<const estimate::DdpRow> rows) {
  const uint32_t machines =
      (options.gpus + options.gpus_per_machine - 1) / options.gpus_per_machine;
  std::vector<Cost> costs;
  for (const auto& row : rows) {
    const bool seals = row.policy == "sealane" && options.sealer == estimate::Sealer::cpu;
    const double cores = seals ? static_cast<double>(machines * options.workers) : 0;
    costs.push_back(
        {row.policy, prices.of(row.time_s, options.gpus, 0), prices.of(row.time_s, 0, cores)});
  }
  return costs;
}

std::string table_of(const std::string& per, const std::vector<Cost>& costs) {
  Table table({{"price of a " + per, Align::left}, {"GPUs"}, {"cores"}, {"together"}, {"of off"}});
  const double off = costs.empty() ? 0 : costs.front().total();
  for (const Cost& cost : costs) {
    table.add_row({cost.policy, fmt::format("{:.4g}", cost.gpus), fmt::format("{:.4g}", cost.cores),
                   fmt::format("{:.4g}", cost.total()),
                   off > 0 ? fmt::format("{:.3f}x", cost.total() / off) : "-"});
  }
  return "\n" + table.text();
}

json json_of(const std::string& per, const Prices& prices, const std::vector<Cost>& costs) {
  json result{
      {"per", per}, {"gpu_per_hour", prices.gpu_per_hour}, {"core_per_hour", prices.core_per_hour}};
  for (const Cost& cost : costs) {
    result["policies"][cost.policy] = {{"gpus", cost.gpus}, {"cores", cost.cores}};
  }
  return result;
}

}  // namespace

std::string price_text(const EstimateSubject& subject, const Prices& prices,
                       std::span<const estimate::ServingRow> rows) {
  return table_of(unit_of(subject).name, costs_of(subject, prices, rows)) +
         wrapped(
             "Cores: those that seal, as long as they are busy. Where 'sealane' is below "
             "'stock', the GPU time it wins is worth more than they are.",
             0);
}

json price_json(const EstimateSubject& subject, const Prices& prices,
                std::span<const estimate::ServingRow> rows) {
  return json_of(unit_of(subject).name, prices, costs_of(subject, prices, rows));
}

std::string ddp_price_text(const Prices& prices, const estimate::DdpOptions& options,
                           std::span<const estimate::DdpRow> rows) {
  return table_of("step", costs_of(prices, options, rows)) +
         wrapped("Cores: --workers of every machine, the whole step long.", 0);
}

json ddp_price_json(const Prices& prices, const estimate::DdpOptions& options,
                    std::span<const estimate::DdpRow> rows) {
  return json_of("step", prices, costs_of(prices, options, rows));
}

std::string fleet_text(const estimate::Fleet& fleet, const Platform& platform) {
  std::vector<Table::Column> columns{{"cores per GPU"}, {"GPUs"}};
  for (const auto& row : fleet.points.front().rows) {
    if (row.policy != "off") columns.push_back({row.policy + ", loss"});
  }
  const bool ranges = fleet.points.front().rows.back().loss_range.known();
  if (ranges) columns.push_back({"80 %"});
  Table table(columns);
  for (const estimate::FleetPoint& point : fleet.points) {
    std::vector<std::string> cells{fmt::format("{}", point.cores_per_gpu),
                                   fmt::format("{}", point.gpus)};
    for (const auto& row : point.rows) {
      if (row.policy == "off") continue;
      cells.push_back(fmt::format("{:.1f} %", row.loss_pct));
    }
    if (ranges) {
      const estimate::Interval& range = point.rows.back().loss_range;
      cells.push_back(fmt::format("{:.1f}-{:.1f}", range.low, range.high));
    }
    table.add_row(cells);
  }
  const std::string& last = fleet.points.front().rows.back().policy;
  const std::string enough =
      fleet.enough ? fmt::format("'{}' loses at most {:.0f} % from {} cores for each GPU on.", last,
                                 estimate::kFleetGoalPct, *fleet.enough)
                   : fmt::format("'{}' loses more than {:.0f} % with any number of cores.", last,
                                 estimate::kFleetGoalPct);
  return "\n" + table.text() +
         wrapped(
             fmt::format("{} GPUs: how many the host's {} cores then serve. A GPU has its share "
                         "of the cores, the program's own among them, and of the memory's "
                         "bandwidth.",
                         enough, platform.host.cores),
             0);
}

json fleet_json(const estimate::Fleet& fleet) {
  json points = json::array();
  for (const estimate::FleetPoint& point : fleet.points) {
    json one{{"cores_per_gpu", point.cores_per_gpu}, {"gpus", point.gpus}};
    for (const auto& row : point.rows) {
      one["loss_pct"][row.policy] = row.loss_pct;
      if (row.loss_range.known()) {
        one["loss_pct_80"][row.policy] = {row.loss_range.low, row.loss_range.high};
      }
    }
    points.push_back(std::move(one));
  }
  json result{{"goal_pct", estimate::kFleetGoalPct}, {"points", std::move(points)}};
  if (fleet.enough) result["cores_enough"] = *fleet.enough;
  return result;
}

}  // namespace sealane::cli
