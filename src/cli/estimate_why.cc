// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "base/figures.h"
#include "cli/estimate_report.h"
#include "platform/spread.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

using nlohmann::json;
using report::Align;
using report::Table;

constexpr size_t kShown = 10;
constexpr double kWorthShowing = 0.1;  // of what moves a policy most

// Two fit beside the names: the first and the last that were asked for. All are in the JSON.
std::vector<size_t> shown_policies(const Why& why) {
  if (why.policies.size() < 2) return {};
  if (why.policies.size() == 2) return {1};
  return {1, why.policies.size() - 1};
}

std::string between_text(const estimate::Interval& range, bool percent) {
  const int digits = range.high >= 100 ? 0 : (percent ? 1 : 2);
  if (range.low == range.high) return "-";
  return fmt::format("{:.{}f}-{:.{}f}", range.low, digits, range.high, digits);
}

double width(const estimate::Interval& range) { return range.high - range.low; }

// By how much of what moves a policy most it moves that policy, or the other that is shown.
using Weighed = std::pair<double, const estimate::Leaning*>;
std::vector<Weighed> weigh(const Why& why, const std::vector<size_t>& policies) {
  std::vector<Weighed> weighed;
  for (const estimate::Leaning& each : why.leanings) weighed.emplace_back(0, &each);
  for (const size_t i : policies) {
    double most = 0;
    for (const estimate::Leaning& each : why.leanings)
      most = std::max(most, width(each.between[i]));
    if (most == 0) continue;
    for (auto& [weight, each] : weighed) weight = std::max(weight, width(each->between[i]) / most);
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const Weighed& a, const Weighed& b) { return a.first > b.first; });
  return weighed;
}

std::string why_text(const Why& why) {
  if (why.leanings.empty()) return "\nIt rests on no number that may be off.\n";
  const std::vector<size_t> policies = shown_policies(why);
  std::vector<Table::Column> columns{{"rests on", Align::left}, {"+-"}};
  for (const size_t i : policies) columns.push_back({why.policies[i]});
  columns.push_back({"known", Align::left});
  Table table(columns);
  const std::vector<Weighed> weighed = weigh(why, policies);
  size_t shown = 0;
  for (const auto& [weight, each] : weighed) {
    if (shown == kShown || weight < kWorthShowing) break;
    ++shown;
    std::vector<std::string> cells{each->name, fmt::format("{:.0f} %", 100 * each->spread)};
    for (const size_t i : policies) {
      cells.push_back(between_text(each->between[i], why.what == kLoss));
    }
    cells.emplace_back(to_string(each->kind));
    table.add_row(cells);
  }
  std::string note = fmt::format(
      "Where the {} lies with that number alone at either end of its spread; '-': it does not "
      "move.",
      why.what);
  if (shown < weighed.size()) {
    note += fmt::format(" {} more move it less or not at all.", weighed.size() - shown);
  }
  note +=
      " Measure first what is on top and not 'published': a flag or --platform FILE.toml takes it.";
  return "\n" + table.text() + wrapped(note, 0);
}

json why_json(const Why& why) {
  json all = json::array();
  for (const estimate::Leaning& each : why.leanings) {
    json between = json::object();
    for (size_t i = 1; i < why.policies.size(); ++i) {
      between[why.policies[i]] = {each.between[i].low, each.between[i].high};
    }
    all.push_back({{"name", each.name},
                   {"kind", to_string(each.kind)},
                   {"spread", each.spread},
                   {"between", std::move(between)}});
  }
  return all;
}

}  // namespace

void add_why(const Why& why, Found& found) {
  found.text += why_text(why);
  found.json["rests_on"] = why_json(why);
}

}  // namespace sealane::cli
