// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A serving workload or a recorded program through the simulator, under one policy after another.
// Policies run on threads of their own; the result does not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/budget.h"
#include "core/policy.h"
#include "estimate/interval.h"
#include "estimate/loss_parts.h"
#include "estimate/price.h"
#include "estimate/rests_on.h"
#include "platform/platform.h"
#include "sim/sim.h"
#include "workload/feed.h"
#include "workload/model.h"
#include "workload/serving/serving.h"

namespace sealane::estimate {

// The policies of core/policy.h, and between `stock` and `sealane` the steps that take one part of
// the cost away each: `engine`, then `async`, then `parallel`. In the order of the table.
std::span<const Policy> serving_policies();
const Policy* find_serving_policy(std::string_view name);
std::vector<std::string> serving_policy_names();

workload::Roofline roofline_of(const Platform& platform);

struct ServingRow {
  std::string policy;
  double time_s = 0;      // of what was counted
  double throughput = 0;  // 0 for a trace
  double loss_pct = 0;    // of throughput, against `off`
  double slowdown = 1;    // of time for the same work, against `off`
  double hit_rate = 0;    // of bulk copies to the device; 0 if nothing is predicted
  uint64_t messages = 0;
  uint64_t sealed_bytes = 0;
  double worker_cores = 0;  // busy on average
  std::optional<double> latency_p50_ms;
  std::optional<double> latency_p99_ms;
  double price = 0;  // of priced_units of work, or of a trace's run; cores while they seal
  std::vector<sim::Span> timeline;
  std::optional<LossParts> parts;  // of loss_pct, if they were asked for

  // Four out of five (interval.h); all zero if nothing was drawn.
  Interval throughput_range;
  Interval time_range;
  Interval loss_range;
  Interval slowdown_range;
  Interval price_range;
};

struct ServingPlan {
  Platform platform;
  std::vector<Policy> policies;  // `off` is run as well if it is not among them
  uint32_t workers = 8;
  uint64_t slot_bytes_max = kSlotBytesDefault;
  uint64_t seed = 1;
  size_t timeline_spans = 0;
  uint32_t draws = 0;  // of platforms; 0: predictions without their uncertainty
  bool parts = false;  // say where each loss goes: two more runs
  Prices prices;
  double priced_units = 1;
};

// An option of workloads by the name that the command line and manifests have for it. One of words
// (`takes`, separated by |) is set by its place among them.
using SetWord = void (*)(workload::ServingOptions&, size_t);
struct ServingOption {
  std::string_view name;
  std::variant<std::optional<uint64_t> workload::ServingOptions::*,
               std::optional<double> workload::ServingOptions::*, SetWord>
      to;
  std::string_view takes;
  double least;
  double most;
  std::string_view help;
};
std::span<const ServingOption> serving_options();
// False if it is none of the option's words.
bool set_serving_word(const ServingOption& option, const std::string& word,
                      workload::ServingOptions& options);

// What a workload takes for granted if nobody gives it, and how far it may be off: engines need
// from half a millisecond to several of the host for a step.
struct AssumedOption {
  std::string_view flag;  // without dashes
  double value = 0;
  double spread = 0;
  std::optional<double> workload::ServingOptions::*option = nullptr;
};
std::span<const AssumedOption> assumed_options();

// Options as they may be: what was not given and is only assumed varies like a platform's numbers.
workload::ServingOptions drawn(const workload::ServingOptions& options, const Draw& draw);

// A recorded run is one of many that might have been: its host and kernel times vary by so much
// from run to run, profiler included.
constexpr double kRunSpread = 0.10;
workload::Program drawn(const workload::Program& program, const Draw& draw);

// `make` gives every policy a program of its own, as it runs on that platform and in that draw. An
// internal error if the simulator finds a broken promise, which would be a bug of ours.
using MakeFeed = std::function<std::unique_ptr<workload::Feed>(const Platform&, const Draw&)>;
Result<std::vector<ServingRow>> estimate_serving(const ServingPlan& plan, const MakeFeed& make);
Result<std::vector<ServingRow>> estimate_program(const ServingPlan& plan,
                                                 const workload::Program& program);

// What the losses, or of a program the slowdowns, rest on, `off` first (rests_on.h). `options` are
// those that `make` takes, and `read` the flags that the workload reads: what is assumed of them
// and was not given is among it.
using MakeWith = std::function<std::unique_ptr<workload::Feed>(const Platform&,
                                                               const workload::ServingOptions&)>;
std::vector<Unknown> serving_unknowns(const ServingPlan& plan,
                                      const workload::ServingOptions& options,
                                      std::string_view read, const MakeWith& make);
std::vector<Unknown> program_unknowns(const ServingPlan& plan, const workload::Program& program);

}  // namespace sealane::estimate
