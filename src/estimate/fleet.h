// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// GPUs that share a host: each has its share of the cores, the program's own thread among them, and
// of the memory's bandwidth. How much is lost with so many cores for each GPU, and how few are
// enough. Pure but for the simulation's threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "estimate/serving.h"
#include "platform/platform.h"

namespace sealane::estimate {

constexpr double kFleetGoalPct = 5;  // of throughput

struct FleetPoint {
  uint32_t cores_per_gpu = 0;
  uint32_t gpus = 0;             // that the host then has cores for
  std::vector<ServingRow> rows;  // `off` first
};

struct Fleet {
  std::vector<FleetPoint> points;  // by cores, ascending
  // The fewest cores for each GPU from which on the last policy loses at most the goal; nothing:
  // not with all the host has.
  std::optional<uint32_t> enough;
  // Four out of five (interval.h), as counts that were tried: enough if all turns out well, and
  // enough even if it turns out badly.
  std::optional<uint32_t> enough_at_best;
  std::optional<uint32_t> enough_at_worst;
};

// The host as one of its GPUs sees it.
Platform share_of_host(const Platform& platform, uint32_t cores_per_gpu);

Result<Fleet> estimate_fleet(const ServingPlan& plan, const MakeFeed& make, double goal_pct);

}  // namespace sealane::estimate
