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
#include "estimate/fleet.h"
#include "estimate/price.h"
#include "estimate/rests_on.h"
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

// What work costs when cores and GPUs have a price, and how many cores each GPU of a host needs
// (estimate_costs.cc).

// How many units of work a price is for, by the unit of throughput; rows are priced for as many.
double priced_units(std::string_view throughput);

// A core counts as long as it is busy sealing.
std::string price_text(const EstimateSubject& subject, const estimate::Prices& prices,
                       std::span<const estimate::ServingRow> rows);
nlohmann::json price_json(const EstimateSubject& subject, const estimate::Prices& prices,
                          std::span<const estimate::ServingRow> rows);

// The cores of 'sealane' count all the time, in every machine.
std::string ddp_price_text(const estimate::Prices& prices, const estimate::DdpOptions& options,
                           std::span<const estimate::DdpRow> rows);
nlohmann::json ddp_price_json(const estimate::Prices& prices, const estimate::DdpOptions& options,
                              std::span<const estimate::DdpRow> rows);

std::string fleet_text(const estimate::Fleet& fleet, const Platform& platform);
nlohmann::json fleet_json(const estimate::Fleet& fleet);

// What an estimate rests on (estimate/rests_on.h, estimate_why.cc).
constexpr const char* kLoss = "loss in %";
constexpr const char* kSlowdown = "slowdown";

struct Why {
  std::vector<std::string> policies;  // the rows, `off` first
  std::string what;                   // kLoss or kSlowdown
  std::vector<estimate::Leaning> leanings;
};

std::string why_text(const Why& why);
nlohmann::json why_json(const Why& why);

}  // namespace sealane::cli
