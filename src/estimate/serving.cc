// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/serving.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <system_error>

#include "platform/spread.h"

namespace sealane::estimate {
namespace {

constexpr Policy kEngine{.name = "engine", .fast_engine = true};
constexpr Policy kAsync{
    .name = "async", .fast_engine = true, .async = true, .coalesce = true, .by_cost = true};

const std::array<Policy, 8>& all_policies() {
  static const std::array<Policy, 8> all{*find_policy("off"),
                                         *find_policy("stock"),
                                         kEngine,
                                         kAsync,
                                         *find_policy("parallel"),
                                         *find_policy("pipellm"),
                                         *find_policy("speculate"),
                                         *find_policy("sealane")};
  return all;
}

double seconds(Duration time) { return static_cast<double>(time.count()) / 1e9; }

double percentile_ms(std::vector<Duration>& sorted, double share) {
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  return seconds(sorted[at]) * 1e3;
}

sim::Setup setup_for(const ServingPlan& plan, const Policy& policy) {
  sim::Setup setup;
  setup.platform = plan.platform;
  setup.policy = policy;
  setup.seed = plan.seed;
  setup.workers = plan.workers;
  // As the runtime is if nobody asks for more: pinned memory is the driver's, and not guarded.
  setup.page_guards = !policy.where_it_pays;
  setup.slot_bytes_max = plan.slot_bytes_max;
  setup.timeline_spans = plan.timeline_spans;
  return setup;
}

Result<ServingRow> row_of(const Policy& policy, sim::Outcome outcome) {
  if (outcome.violation) {
    return internal_error(fmt::format("the simulation under '{}' broke the rule '{}': {}",
                                      policy.name, outcome.violation->rule,
                                      outcome.violation->what));
  }
  ServingRow row;
  row.policy = policy.name;
  row.time_s = seconds(outcome.elapsed);
  if (policy.speculates() && outcome.counters.bulk_requests > 0) {
    row.hit_rate = outcome.counters.hit_rate();
  }
  row.messages = outcome.counters.sealed_messages;
  row.sealed_bytes = outcome.counters.sealed_bytes;
  if (row.time_s > 0) row.worker_cores = seconds(outcome.counters.workers_busy) / row.time_s;
  row.timeline = std::move(outcome.timeline);
  return row;
}

void add_achieved(ServingRow& row, const workload::Achieved& achieved) {
  row.time_s = seconds(achieved.time);
  row.throughput = achieved.per_second();
  std::vector<Duration> sorted = achieved.latencies;
  if (sorted.empty()) return;
  std::sort(sorted.begin(), sorted.end());
  row.latency_p50_ms = percentile_ms(sorted, 0.50);
  row.latency_p99_ms = percentile_ms(sorted, 0.99);
}

// `off` first, because everything is compared with it.
std::vector<Policy> order_of(const ServingPlan& plan) {
  std::vector<Policy> order{all_policies()[0]};
  for (const Policy& policy : plan.policies) {
    if (policy.name != order[0].name) order.push_back(policy);
  }
  return order;
}

template <typename Run>
Result<std::vector<ServingRow>> run_once(const ServingPlan& plan, const Draw& draw, Run& run) {
  std::vector<std::future<Result<ServingRow>>> running;
  const std::vector<Policy> order = order_of(plan);
  for (const Policy& policy : order) {
    const auto work = [&run, &plan, &draw, policy] {
      return run(policy, setup_for(plan, policy), draw);
    };
    try {
      running.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {  // no thread is to be had: this one, when it asks
      running.push_back(std::async(std::launch::deferred, work));
    }
  }
  std::vector<ServingRow> rows;
  std::optional<Error> failed;
  for (auto& each : running) {
    auto row = each.get();
    if (row) {
      rows.push_back(*std::move(row));
    } else if (!failed) {
      failed = row.error();
    }
  }
  if (failed) return *failed;
  const ServingRow off = rows.front();
  for (ServingRow& row : rows) {
    if (off.throughput > 0) {
      row.slowdown = row.throughput > 0 ? off.throughput / row.throughput : 0;
    } else if (off.time_s > 0) {
      row.slowdown = row.time_s / off.time_s;
    }
    row.loss_pct = row.slowdown > 0 ? 100 * (1 - 1 / row.slowdown) : 100;
    const double work_s = row.throughput > 0 ? plan.priced_units / row.throughput : row.time_s;
    row.price = plan.prices.of(work_s, 1, row.worker_cores);
  }
  return rows;
}

// The same once more with launches, then with copies too, as they are without CC.
template <typename Run>
Status add_parts(std::vector<ServingRow>& rows, const ServingPlan& plan, Run& run) {
  ServingPlan other = plan;
  other.timeline_spans = 0;
  other.platform = with_open_launches(plan.platform);
  const auto launched = run_once(other, {}, run);
  if (!launched) return launched.error();
  other.platform = with_open_copies(other.platform);
  const auto copied = run_once(other, {}, run);
  if (!copied) return copied.error();
  for (size_t i = 0; i < rows.size(); ++i) {
    const double without_launches = (*launched)[i].loss_pct;
    const double without_both = (*copied)[i].loss_pct;
    rows[i].parts = LossParts{.launches = rows[i].loss_pct - without_launches,
                              .copies = without_launches - without_both,
                              .waiting = without_both};
  }
  return {};
}

// One after the other: each is as many simulations as there are policies.
template <typename Run>
Result<std::vector<ServingRow>> run_all(const ServingPlan& plan, Run run) {
  auto rows = run_once(plan, {}, run);
  if (!rows) return rows;
  if (plan.parts) {
    if (Status status = add_parts(*rows, plan, run); !status) return status.error();
  }
  if (plan.draws == 0) return rows;
  std::vector<std::vector<ServingRow>> all;
  ServingPlan other = plan;
  other.timeline_spans = 0;
  for (uint32_t index = 0; index < plan.draws; ++index) {
    other.platform = drawn(plan.platform, index, plan.draws);
    auto again = run_once(other, {index, plan.draws}, run);
    if (!again) return again.error();
    all.push_back(*std::move(again));
  }
  set_range(*rows, all, &ServingRow::throughput, &ServingRow::throughput_range);
  set_range(*rows, all, &ServingRow::time_s, &ServingRow::time_range);
  set_range(*rows, all, &ServingRow::loss_pct, &ServingRow::loss_range);
  set_range(*rows, all, &ServingRow::slowdown, &ServingRow::slowdown_range);
  set_range(*rows, all, &ServingRow::price, &ServingRow::price_range);
  return rows;
}

}  // namespace

std::span<const Policy> serving_policies() { return all_policies(); }

const Policy* find_serving_policy(std::string_view name) {
  for (const Policy& policy : all_policies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

std::vector<std::string> serving_policy_names() {
  std::vector<std::string> names;
  for (const Policy& policy : all_policies()) names.emplace_back(policy.name);
  return names;
}

workload::Roofline roofline_of(const Platform& platform) {
  const Gpu& gpu = platform.gpu;
  return {.flops_per_s = gpu.fp16_tflops * 1e12 * gpu.compute_efficiency,
          .bytes_per_s = gpu.memory_gb_per_s * 1e9 * gpu.memory_efficiency,
          .gpu_bytes = gpu.memory_bytes,
          .host_bytes = platform.host.memory_bytes};
}

std::span<const AssumedOption> assumed_options() {
  using workload::ServingOptions;
  static constexpr std::array<AssumedOption, 5> kAll{
      {{"host-us", workload::kHostUs, 1.0, &ServingOptions::host_us},
       {"sequence-us", workload::kSequenceUs, 1.0, &ServingOptions::sequence_us},
       {"front-ms", workload::kFrontMs, 1.4, &ServingOptions::front_ms},
       {"kernels-per-layer", workload::kKernelsPerLayer, 0.3, &ServingOptions::kernels_per_layer},
       {"dispatch-us", workload::kDispatchUs, 1.24, &ServingOptions::dispatch_us}}};
  return kAll;
}

workload::ServingOptions drawn(const workload::ServingOptions& options, const Draw& draw) {
  workload::ServingOptions result = options;
  if (draw.count == 0) return result;
  for (const AssumedOption& each : assumed_options()) {
    if (options.*each.option) continue;
    const std::string name(each.flag);
    result.*each.option = each.value * drawn_factor(name, each.spread, draw.index, draw.count);
  }
  return result;
}

workload::Program drawn(const workload::Program& program, const Draw& draw) {
  workload::Program result = program;
  if (draw.count == 0) return result;
  const double times = drawn_factor("recorded run", kRunSpread, draw.index, draw.count);
  const auto scale = [&](Duration& time) {
    time = Duration(std::llround(static_cast<double>(time.count()) * times));
  };
  for (workload::Operation& operation : result) {
    scale(operation.think);
    if (auto* launch = std::get_if<workload::Launch>(&operation.action)) scale(launch->run_time);
  }
  return result;
}

Result<std::vector<ServingRow>> estimate_serving(const ServingPlan& plan, const MakeFeed& make) {
  const auto run = [&](const Policy& policy, const sim::Setup& setup,
                       const Draw& draw) -> Result<ServingRow> {
    const std::unique_ptr<workload::Feed> feed = make(setup.platform, draw);
    auto row = row_of(policy, sim::simulate(*feed, setup));
    if (row) add_achieved(*row, feed->achieved());
    return row;
  };
  return run_all(plan, run);
}

Result<std::vector<ServingRow>> estimate_program(const ServingPlan& plan,
                                                 const workload::Program& program) {
  return run_all(plan, [&](const Policy& policy, const sim::Setup& setup, const Draw& draw) {
    if (draw.count == 0) return row_of(policy, sim::simulate(program, setup));
    return row_of(policy, sim::simulate(drawn(program, draw), setup));
  });
}

}  // namespace sealane::estimate
