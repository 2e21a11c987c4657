// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane estimate` found, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

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

// What was found, for people and for programs.
struct Found {
  std::string text;
  nlohmann::json json;
};

Found serving_found(const EstimateSubject& subject, const Platform& platform,
                    std::span<const estimate::ServingRow> rows);

// What `sealane` needs for kDdpGoal: of one sealer, and per machine. Nothing: out of reach.
struct DdpNeeds {
  std::optional<double> seal_rate;
  estimate::Interval seal_rate_range;
  std::optional<uint32_t> workers;
  estimate::Interval workers_range;
  std::optional<estimate::NeededBucket> bucket;
};
// The rows for 1 to 1,024 GPUs or, over NCCL, machines, by number of GPUs.
struct DdpScale {
  uint32_t gpus;
  std::vector<estimate::DdpRow> rows;
};
struct DdpEstimate {
  EstimateSubject subject;
  const Platform& platform;
  const estimate::DdpOptions& options;
  uint64_t batch = 0;  // of one GPU
  std::vector<estimate::DdpRow> rows;
  DdpNeeds needs;
  std::vector<DdpScale> scaling;
};
Found ddp_found(const DdpEstimate& estimate);

// What --workload, --platform, --model and --policy can be.
Found list_found();

// `sealane` is to take at most so many times as long as `off`.
constexpr double kDdpGoal = 1.15;

// What work costs when cores and GPUs have a price, and how many cores each GPU of a host needs
// (estimate_costs.cc).

// How many units of work a price is for, by the unit of throughput; rows are priced for as many.
double priced_units(std::string_view throughput);

// A core counts as long as it is busy sealing; in training those of 'sealane' count all the time,
// in every machine.
void add_prices(const EstimateSubject& subject, const estimate::Prices& prices,
                std::span<const estimate::ServingRow> rows, Found& found);
void add_prices(const estimate::Prices& prices, const DdpEstimate& estimate, Found& found);

void add_fleet(const estimate::Fleet& fleet, const Platform& platform, Found& found);

// What an estimate rests on (estimate/rests_on.h, estimate_why.cc).
constexpr const char* kLoss = "loss in %";
constexpr const char* kSlowdown = "slowdown";

struct Why {
  std::vector<std::string> policies;  // the rows, `off` first
  std::string what;                   // kLoss or kSlowdown
  std::vector<estimate::Leaning> leanings;
};

void add_why(const Why& why, Found& found);

}  // namespace sealane::cli
