// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/figures.h"
#include "cli/estimate_report.h"
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

Unit unit_of(std::string_view throughput) {
  if (throughput.empty()) return {"run", 1};
  if (throughput == "tokens/s") return {"million tokens", 1e6};
  if (throughput == "requests/s") return {"thousand requests", 1e3};
  if (throughput == "steps/s") return {"thousand steps", 1e3};
  return {"GB", 1};
}

struct Cost {
  std::string policy;
  double gpus = 0;
  double cores = 0;
  estimate::Interval range{};  // of both together
  double total() const { return gpus + cores; }
};

std::vector<Cost> costs_of(const EstimateSubject& subject, const Prices& prices,
                           std::span<const estimate::ServingRow> rows) {
  std::vector<Cost> costs;
  for (const auto& row : rows) {
    const double seconds =
        row.throughput > 0 ? unit_of(subject.unit).units / row.throughput : row.time_s;
    const double gpus = prices.of(seconds, 1, 0);
    costs.push_back({row.policy, gpus, row.price - gpus, row.price_range});
  }
  return costs;
}

// Cores are paid for the whole step, so a price is as uncertain as its time.
std::vector<Cost> costs_of(const Prices& prices, const DdpEstimate& estimate) {
  const estimate::DdpOptions& options = estimate.options;
  const uint32_t machines =
      (options.gpus + options.gpus_per_machine - 1) / options.gpus_per_machine;
  std::vector<Cost> costs;
  for (const auto& row : estimate.rows) {
    const bool seals = row.policy == "sealane" && options.sealer == estimate::Sealer::cpu &&
                       options.link != estimate::Link::nvlink_encrypted;
    const double cores = seals ? static_cast<double>(machines * options.workers) : 0;
    const auto of = [&](double seconds) { return prices.of(seconds, options.gpus, cores); };
    costs.push_back({row.policy,
                     prices.of(row.time_s, options.gpus, 0),
                     prices.of(row.time_s, 0, cores),
                     {of(row.time_range.low), of(row.time_range.high)}});
  }
  return costs;
}

std::string table_of(const std::string& per, const std::vector<Cost>& costs) {
  Table table({{"price of a " + per, Align::left},
               {"GPUs"},
               {"cores"},
               {"together"},
               {"80 %"},
               {"of off"}});
  const double off = costs.empty() ? 0 : costs.front().total();
  // Four digits of the whole price; its parts no finer.
  const double digits = off > 0 ? std::clamp(4 - std::ceil(std::log10(off)), 0.0, 9.0) : 4;
  const auto figure = [&](double price) {
    return fmt::format("{:.{}f}", price, static_cast<int>(digits));
  };
  for (const Cost& cost : costs) {
    const auto& range = cost.range;
    table.add_row({cost.policy, figure(cost.gpus), figure(cost.cores), figure(cost.total()),
                   range.known() ? figure(range.low) + "-" + figure(range.high) : "-",
                   off > 0 ? fmt::format("{:.3f}x", cost.total() / off) : "-"});
  }
  return "\n" + table.text();
}

json json_of(const std::string& per, const Prices& prices, const std::vector<Cost>& costs) {
  json result{
      {"per", per}, {"gpu_per_hour", prices.gpu_per_hour}, {"core_per_hour", prices.core_per_hour}};
  for (const Cost& cost : costs) {
    json& to = result["policies"][cost.policy];
    to = {{"gpus", cost.gpus}, {"cores", cost.cores}, {"together", cost.total()}};
    if (cost.range.known()) to["together_80"] = {cost.range.low, cost.range.high};
  }
  return result;
}

void add_table(const std::string& per, const Prices& prices, const std::vector<Cost>& costs,
               const char* note, Found& found) {
  found.text += table_of(per, costs) + wrapped(note, 0);
  found.json["prices"] = json_of(per, prices, costs);
}

// A number and its interval, in a table of many.
std::string with_range(const estimate::ServingRow& row) {
  const std::string loss = fmt::format("{:.1f}", row.loss_pct);
  if (!row.loss_range.known()) return loss;
  return fmt::format("{} {:.1f}-{:.1f}", loss, row.loss_range.low, row.loss_range.high);
}

std::string enough_text(const estimate::Fleet& fleet) {
  const std::string& last = fleet.points.front().rows.back().policy;
  const double goal = estimate::kFleetGoalPct;
  const bool ranges = fleet.points.front().rows.back().loss_range.known();
  std::string text =
      fleet.enough
          ? fmt::format("'{}' loses at most {:.0f} % from {} core{} for each GPU on", last, goal,
                        *fleet.enough, *fleet.enough == 1 ? "" : "s")
          : fmt::format("'{}' loses more than {:.0f} % with any number of cores", last, goal);
  if (!ranges) return text + ".";
  const auto number = [](const std::optional<uint32_t>& cores) {
    return cores ? fmt::format("{}", *cores) : std::string("out of reach");
  };
  return text + fmt::format(" (80 %: {} to {}).", number(fleet.enough_at_best),
                            number(fleet.enough_at_worst));
}

std::string fleet_text(const estimate::Fleet& fleet, const Platform& platform) {
  const bool ranges = fleet.points.front().rows.back().loss_range.known();
  std::vector<Table::Column> columns{{"cores"}, {"GPUs"}};
  for (const auto& row : fleet.points.front().rows) {
    if (row.policy != "off") columns.push_back({row.policy + (ranges ? ", 80 %" : "")});
  }
  Table table(columns);
  for (const estimate::FleetPoint& point : fleet.points) {
    std::vector<std::string> cells{fmt::format("{}", point.cores_per_gpu),
                                   fmt::format("{}", point.gpus)};
    for (const auto& row : point.rows) {
      if (row.policy != "off") cells.push_back(with_range(row));
    }
    table.add_row(cells);
  }
  return "\nLoss in per cent by cores for each GPU\n" + table.text() +
         wrapped(
             fmt::format("{} GPUs: how many the host's {} cores then serve. A GPU has its share "
                         "of the cores, the program's own among them, and of the memory's "
                         "bandwidth.",
                         enough_text(fleet), platform.host.cores),
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
  if (fleet.enough_at_best) result["cores_enough_80"]["low"] = *fleet.enough_at_best;
  if (fleet.enough_at_worst) result["cores_enough_80"]["high"] = *fleet.enough_at_worst;
  return result;
}

}  // namespace

double priced_units(std::string_view throughput) { return unit_of(throughput).units; }

void add_prices(const EstimateSubject& subject, const Prices& prices,
                std::span<const estimate::ServingRow> rows, Found& found) {
  add_table(
      unit_of(subject.unit).name, prices, costs_of(subject, prices, rows),
      "Cores: those that seal, as long as they are busy. Where 'sealane' is below 'stock', the "
      "GPU time it wins is worth more than they are.",
      found);
}

void add_prices(const Prices& prices, const DdpEstimate& estimate, Found& found) {
  add_table("step", prices, costs_of(prices, estimate),
            "Cores: --workers of every machine, the whole step long.", found);
}

void add_fleet(const estimate::Fleet& fleet, const Platform& platform, Found& found) {
  found.text += fleet_text(fleet, platform);
  found.json["fleet"] = fleet_json(fleet);
}

}  // namespace sealane::cli
