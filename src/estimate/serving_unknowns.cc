// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What an estimate of serving or of a recorded run may be off by, number by number.

#include <cmath>

#include "estimate/serving.h"
#include "platform/spread.h"

namespace sealane::estimate {
namespace {

ServingPlan once(const ServingPlan& plan, const Platform& platform) {
  ServingPlan result = plan;
  result.platform = platform;
  result.draws = 0;
  result.parts = false;
  result.timeline_spans = 0;
  return result;
}

Values values_of(const Result<std::vector<ServingRow>>& rows, double ServingRow::*value) {
  if (!rows) return rows.error();
  std::vector<double> values;
  for (const ServingRow& row : *rows) values.push_back(row.*value);
  return values;
}

}  // namespace

std::vector<Unknown> serving_unknowns(const ServingPlan& plan,
                                      const workload::ServingOptions& options,
                                      std::string_view read, const MakeWith& make) {
  const auto losses = [plan, make](const Platform& where, const workload::ServingOptions& with) {
    const auto feed = [&](const Platform& at, const Draw&) { return make(at, with); };
    return values_of(estimate_serving(once(plan, where), feed), &ServingRow::loss_pct);
  };
  std::vector<Unknown> unknowns =
      unknowns_of(plan.platform, [=](const Platform& where) { return losses(where, options); });
  for (const AssumedOption& each : assumed_options()) {
    if (read.find(each.flag) == std::string_view::npos || options.*each.option) continue;
    unknowns.push_back(
        {"--" + std::string(each.flag), Knowledge::assumed, each.spread, [=](int direction) {
           workload::ServingOptions with = options;
           with.*each.option = each.value * std::pow(1 + each.spread, direction);
           return losses(plan.platform, with);
         }});
  }
  return unknowns;
}

std::vector<Unknown> program_unknowns(const ServingPlan& plan, const workload::Program& program) {
  return unknowns_of(plan.platform, [plan, program](const Platform& where) {
    return values_of(estimate_program(once(plan, where), program), &ServingRow::slowdown);
  });
}

}  // namespace sealane::estimate
