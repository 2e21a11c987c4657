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
  for (auto point = fleet.points.rbegin(); point != fleet.points.rend(); ++point) {
    if (point->rows.back().loss_pct > goal_pct) break;
    fleet.enough = point->cores_per_gpu;
  }
  return fleet;
}

}  // namespace sealane::estimate
