// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane estimate` found, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

#include "estimate/ddp.h"
#include "estimate/serving.h"
#include "platform/platform.h"

namespace sealane::cli {

struct EstimateSubject {
  std::string workload;  // or the trace's file
  std::string model;     // empty for a trace
  std::string unit;      // of throughput; empty for a trace
  uint32_t workers = 0;
  uint64_t seed = 1;
  std::vector<std::pair<std::string, std::string>> options{};  // flags that were given
  uint64_t model_bytes = 0;
};

std::string serving_text(const EstimateSubject& subject, const Platform& platform,
                         std::span<const estimate::ServingRow> rows);
nlohmann::json serving_json(const EstimateSubject& subject, const Platform& platform,
                            std::span<const estimate::ServingRow> rows);

// What `sealane` needs for kDdpGoal: of one sealer, and per machine. Nothing: out of reach.
struct DdpNeeds {
  std::optional<double> seal_rate;
  estimate::Interval seal_rate_range;
  std::optional<uint32_t> workers;
  estimate::Interval workers_range;
  std::optional<estimate::NeededBucket> bucket;
};
std::string ddp_text(const EstimateSubject& subject, const Platform& platform,
                     const estimate::DdpOptions& options, std::span<const estimate::DdpRow> rows,
                     const DdpNeeds& needs);
// `scaling` holds the rows for 1 to 1,024 GPUs, or machines, by number of GPUs.
struct DdpScale {
  uint32_t gpus;
  std::vector<estimate::DdpRow> rows;
};
// Over NCCL.
std::string nccl_text(const EstimateSubject& subject, const Platform& platform,
                      const estimate::DdpOptions& options, std::span<const estimate::DdpRow> rows,
                      const DdpNeeds& needs, std::span<const DdpScale> scaling);
nlohmann::json ddp_json(const EstimateSubject& subject, const Platform& platform,
                        const estimate::DdpOptions& options, uint64_t batch,
                        std::span<const estimate::DdpRow> rows, const DdpNeeds& needs,
                        std::span<const DdpScale> scaling);

// What --workload, --platform, --model and --policy can be.
std::string list_text();
nlohmann::json list_json();

// `sealane` is to take at most so many times as long as `off`.
constexpr double kDdpGoal = 1.15;

}  // namespace sealane::cli
