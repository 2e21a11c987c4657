// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/fleet.h"

#include <algorithm>

namespace sealane::estimate {
namespace {

// Every number up to four, then steps of a half and a third: 6, 8, 12, 16, 24 ...
std::vector<uint32_t> core_counts(uint64_t most) {
  std::vector<uint32_t> counts;
  for (uint32_t power = 1; power <= most; power *= 2) {
    counts.push_back(power);
    const uint32_t between = power + power / 2;
    if (power > 1 && between <= most) counts.push_back(between);
  }
  return counts;
}

// From which number of cores on the last policy's loss stays within the goal.
template <typename LossOf>
std::optional<uint32_t> fewest(const Fleet& fleet, double goal_pct, LossOf loss_of) {
  std::optional<uint32_t> enough;
  for (auto point = fleet.points.rbegin(); point != fleet.points.rend(); ++point) {
    if (loss_of(point->rows.back()) > goal_pct) break;
    enough = point->cores_per_gpu;
  }
  return enough;
}

}  // namespace

Platform share_of_host(const Platform& platform, uint32_t cores_per_gpu) {
  Platform share = platform;
  share.host.cores = cores_per_gpu;
  share.host.memory_gb_per_s = platform.host.memory_gb_per_s * static_cast<double>(cores_per_gpu) /
                               static_cast<double>(platform.host.cores);
  return share;
}

Result<Fleet> estimate_fleet(const ServingPlan& plan, const MakeFeed& make, double goal_pct) {
  Fleet fleet;
  for (const uint32_t cores : core_counts(plan.platform.host.cores)) {
    ServingPlan one = plan;
    one.platform = share_of_host(plan.platform, cores);
    one.workers = std::min(plan.workers, std::max(2u, cores) - 1);
    one.parts = false;
    one.timeline_spans = 0;
    auto rows = estimate_serving(one, make);
    if (!rows) return rows.error();
    const auto gpus = static_cast<uint32_t>(plan.platform.host.cores / cores);
    fleet.points.push_back({cores, gpus, *std::move(rows)});
  }
  fleet.enough = fewest(fleet, goal_pct, [](const ServingRow& row) { return row.loss_pct; });
  if (plan.draws == 0) return fleet;
  fleet.enough_at_best =
      fewest(fleet, goal_pct, [](const ServingRow& row) { return row.loss_range.low; });
  fleet.enough_at_worst =
      fewest(fleet, goal_pct, [](const ServingRow& row) { return row.loss_range.high; });
  return fleet;
}

}  // namespace sealane::estimate
