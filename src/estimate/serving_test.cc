// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Serving estimates: published regimes that nothing was fitted to, and what must hold on any
// platform.

#include "estimate/serving.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "estimate/timeline.h"
#include "estimate/validation_parts.h"
#include "platform/reader.h"
#include "workload/serving/serving.h"

namespace sealane::estimate {
namespace {

using Rows = std::map<std::string, ServingRow>;

Rows serve(const char* workload_name, const char* model, const workload::ServingOptions& options,
           const char* platform_name = "h100-sxm", uint32_t workers = 16) {
  const auto platform = find_platform(platform_name);
  if (!platform) ADD_FAILURE() << platform.error().message;
  ServingPlan plan;
  plan.platform = *platform;
  plan.workers = workers;
  plan.timeline_spans = 1'000;
  for (const Policy& policy : serving_policies()) plan.policies.push_back(policy);
  const auto rows = estimate_serving(plan, [&](const Platform& where, const Draw&) {
    return *workload::make_serving(*workload::find_serving(workload_name),
                                   *workload::find_model(model), roofline_of(where), options);
  });
  if (!rows) ADD_FAILURE() << rows.error().message;
  Rows result;
  if (rows) {
    for (const ServingRow& row : *rows) result[row.policy] = row;
  }
  return result;
}

TEST(ServingEstimate, EveryStepOfTheLadderHelpsVllm) {
  workload::ServingOptions options;
  options.minutes = 0.4;
  options.swap_unit = workload::SwapUnit::layer;
  Rows rows = serve("vllm", "opt-30b", options);
  EXPECT_DOUBLE_EQ(rows["off"].loss_pct, 0);
  EXPECT_GT(rows["stock"].loss_pct, 10);
  EXPECT_LT(rows["engine"].loss_pct, rows["stock"].loss_pct + 2);
  EXPECT_LT(rows["parallel"].loss_pct, rows["engine"].loss_pct);
  EXPECT_LE(rows["sealane"].loss_pct, rows["pipellm"].loss_pct + 1);
  EXPECT_LE(rows["speculate"].loss_pct, rows["pipellm"].loss_pct + 1);
  EXPECT_GT(rows["speculate"].hit_rate, 0.5);
  EXPECT_GT(rows["speculate"].worker_cores, 0);
  EXPECT_GT(*rows["stock"].latency_p99_ms, *rows["stock"].latency_p50_ms);
}

// All its time goes into transfers, so the loss is that of their rates: 52 to 57 GB/s without CC
// and about 5 with one core that seals.
TEST(ServingEstimate, FlexGenLosesMostOfItsThroughput) {
  workload::ServingOptions options;
  options.steps = 1;
  options.batch = 4;
  Rows rows = serve("flexgen", "opt-13b", options);
  EXPECT_GT(rows["stock"].loss_pct, 80);
  EXPECT_LT(rows["stock"].loss_pct, 95);
  EXPECT_LT(rows["sealane"].loss_pct, 40);
  EXPECT_LE(rows["sealane"].loss_pct, rows["pipellm"].loss_pct + 0.5);
}

TEST(ServingEstimate, SmallCopiesCostLessWhenThereIsMoreToCompute) {
  workload::ServingOptions options;
  options.steps = 60;
  double last = 100;
  for (const uint64_t concurrency : {1, 64, 256}) {
    options.concurrency = concurrency;
    Rows rows = serve("decode", "llama-3-8b", options, "h100-tdx", 4);
    EXPECT_LT(rows["stock"].loss_pct, last) << concurrency;
    EXPECT_LT(rows["sealane"].loss_pct, rows["stock"].loss_pct) << concurrency;
    last = rows["stock"].loss_pct;
  }
}

TEST(ServingEstimate, OneSeedIsOneResult) {
  workload::ServingOptions options;
  options.minutes = 0.1;
  options.swap_unit = workload::SwapUnit::request;
  EXPECT_EQ(serve("vllm", "opt-30b", options)["sealane"].throughput,
            serve("vllm", "opt-30b", options)["sealane"].throughput);
}

TEST(ServingEstimate, TimelinesEndWithTheRunAndStayShort) {
  workload::ServingOptions options;
  options.steps = 20;
  Rows rows = serve("decode", "llama-3-8b", options);
  const std::vector<sim::Span>& timeline = rows["stock"].timeline;
  ASSERT_FALSE(timeline.empty());
  EXPECT_LE(timeline.size(), 1'000u);
  const std::vector<Bar> bars = last_bars(timeline, Duration(20'000'000));
  ASSERT_FALSE(bars.empty());
  for (const Bar& bar : bars) {
    EXPECT_GE(bar.from_ms, 0);
    EXPECT_LE(bar.until_ms, 20.001);
    EXPECT_LT(bar.from_ms, bar.until_ms);
  }
  std::vector<ServingRow> all{rows["stock"]};
  const std::string trace = chrome_trace(all);
  EXPECT_NE(trace.find(R"("name":"process_name","args":{"name":"stock"})"), std::string::npos);
  EXPECT_NE(trace.find(R"("name":"kernel")"), std::string::npos);
}

// Who knows how long a step takes without CC gets what CC adds to it: the longer, the less it is.
// What CC does not lengthen is part of the time to the first token: the longer a request's way to
// the engine, the less of it CC takes.
TEST(ServingEstimate, ARequestsWayToTheEngineIsNotSealed) {
  const auto slowdown = [](double front_ms) {
    workload::ServingOptions options;
    options.steps = 6;
    options.front_ms = front_ms;
    Rows rows = serve("kv-restore", "llama-3-8b", options, "b200-tdx");
    return *rows["stock"].latency_p50_ms / *rows["off"].latency_p50_ms;
  };
  const double alone = slowdown(0);
  EXPECT_GT(alone, 4);
  EXPECT_LT(alone, 1 / 0.203) << "no more than copies alone";
  EXPECT_LT(slowdown(14), 3);
  EXPECT_GT(slowdown(14), slowdown(34));
}

// Where copies block, the host's work shows; more sequences are more work.
TEST(ServingEstimate, HostWorkGrowsWithTheSequencesOfAStep) {
  const auto lost_ms = [](double sequence_us) {
    workload::ServingOptions options;
    options.steps = 20;
    options.concurrency = 256;
    options.step_ms = 77;
    options.sequence_us = sequence_us;
    Rows rows = serve("decode", "llama-3-8b", options, "h100-tdx", 4);
    return 1e3 * (rows["stock"].time_s - rows["off"].time_s) / 20;
  };
  EXPECT_NEAR(lost_ms(4) - lost_ms(0), 256 * 0.004, 0.1);
}

TEST(ServingEstimate, AStepThatWasMeasuredIsTakenAsItIs) {
  double last = 100;
  for (const double step_ms : {5.0, 20.0, 80.0}) {
    workload::ServingOptions options;
    options.concurrency = 64;
    options.steps = 50;
    options.step_ms = step_ms;
    Rows rows = serve("decode", "llama-3-8b", options, "h100-tdx");
    EXPECT_NEAR(rows["off"].throughput / (64e3 / step_ms), 1, 0.02) << step_ms;
    EXPECT_LT(rows["stock"].loss_pct, last) << step_ms;
    last = rows["stock"].loss_pct;
  }
}

// Copies that block take from an engine that works ahead what another one never had.
TEST(ServingEstimate, AnEngineThatWaitsForEachStepLosesLessToCopiesThatBlock) {
  const auto run = [](uint64_t steps_ahead) {
    workload::ServingOptions options;
    options.steps = 50;
    options.step_ms = 5;
    options.host_us = 1000;
    options.steps_ahead = steps_ahead;
    return serve("decode", "llama-3-8b", options, "h100-tdx");
  };
  Rows ahead = run(1);
  Rows waits = run(0);
  EXPECT_NEAR(waits["off"].throughput / ahead["off"].throughput, 5.0 / 6, 0.03)
      << "the host's work shows";
  EXPECT_GT(ahead["stock"].loss_pct, 14);
  EXPECT_LT(waits["stock"].loss_pct, 5);
  EXPECT_GT(waits["stock"].loss_pct, 0);
  EXPECT_NEAR(waits["stock"].throughput / ahead["stock"].throughput, 1, 0.03)
      << "blocked, both are the same engine";
}

// Launches, copies and waiting are all there is, and each is where it belongs.
TEST(ServingEstimate, ALossIsLaunchesCopiesAndWaiting) {
  const auto parts_of = [](workload::Graphs graphs, const char* policy) {
    ServingPlan plan;
    plan.platform = *find_platform("b200-tdx");
    plan.policies = {*find_serving_policy(policy)};
    plan.parts = true;
    workload::ServingOptions options;
    options.steps = 40;
    options.step_ms = 1;  // so short that the host is never far ahead
    options.graphs = graphs;
    const auto rows = estimate_serving(plan, [&](const Platform& where, const Draw&) {
      return *workload::make_serving(*workload::find_serving("decode"),
                                     *workload::find_model("llama-3-8b"), roofline_of(where),
                                     options);
    });
    EXPECT_TRUE(rows);
    const ServingRow& row = rows->back();
    EXPECT_TRUE(row.parts);
    EXPECT_NEAR(row.parts->launches + row.parts->copies + row.parts->waiting, row.loss_pct, 1e-9);
    return *row.parts;
  };
  const LossParts graph = parts_of(workload::Graphs::full, "stock");
  const LossParts eager = parts_of(workload::Graphs::none, "stock");
  const LossParts pieces = parts_of(workload::Graphs::piecewise, "stock");
  EXPECT_GT(eager.launches, 30);
  EXPECT_LT(graph.launches, 5);
  EXPECT_GT(pieces.launches, graph.launches);
  EXPECT_LT(pieces.launches, eager.launches);
  EXPECT_GT(graph.waiting, graph.launches) << "a host that cannot work ahead waits";
  // Callers that do not block do not wait, and launches are still there.
  const LossParts ours = parts_of(workload::Graphs::none, "sealane");
  EXPECT_LT(ours.waiting, 2);
  EXPECT_GT(ours.launches, 30);
}

// A device that encrypts its own link: nothing is sealed in software, and nothing is left for us.
TEST(ServingEstimate, WhereNothingIsSealedInSoftwareWeStepAside) {
  workload::ServingOptions options;
  options.steps = 1;
  options.batch = 4;
  Rows rows = serve("flexgen", "opt-13b", options, "b200-tdisp");
  EXPECT_LT(rows["stock"].loss_pct, 4);
  EXPECT_EQ(rows["sealane"].throughput, rows["stock"].throughput);
  EXPECT_EQ(rows["sealane"].worker_cores, 0);
}

// A CPU without AVX512 seals slower, and both AMD hosts slower than the copies they serve.
TEST(ServingEstimate, AmdHostsSealAsTheyWereMeasured) {
  workload::ServingOptions options;
  options.steps = 1;
  options.batch = 4;
  Rows milan = serve("flexgen", "opt-13b", options, "h100-milan", 1);
  Rows genoa = serve("flexgen", "opt-13b", options, "h100-genoa", 1);
  EXPECT_GT(milan["stock"].loss_pct, 60);
  EXPECT_LT(milan["sealane"].loss_pct, milan["stock"].loss_pct);
  EXPECT_GT(genoa["sealane"].throughput, milan["sealane"].throughput);
}

// A recorded run is one of many: its own times are not surer than they are.
TEST(ServingEstimate, ARecordedRunIsDrawnToo) {
  workload::Program program(1);
  program[0].think = Duration{1'000'000};
  program[0].action = workload::Launch{workload::StreamId{1}, Duration{2'000'000}};
  double least = 1e9;
  double most = 0;
  for (uint32_t i = 0; i < kDraws; ++i) {
    const workload::Program other = drawn(program, {i, kDraws});
    const auto think = static_cast<double>(other[0].think.count()) / 1e6;
    EXPECT_NEAR(static_cast<double>(std::get<workload::Launch>(other[0].action).run_time.count()),
                2e6 * think, 2);
    least = std::min(least, think);
    most = std::max(most, think);
  }
  EXPECT_LT(least, 0.92);
  EXPECT_GT(most, 1.08);
  EXPECT_EQ(drawn(program, {}), program);
}

// What is assumed varies, what is given does not.
TEST(ServingEstimate, HostWorkThatNobodyGaveIsDrawn) {
  workload::ServingOptions options;
  EXPECT_FALSE(drawn(options, {}).host_us);
  std::vector<double> seen;
  for (uint32_t i = 0; i < kDraws; ++i) seen.push_back(*drawn(options, {i, kDraws}).host_us);
  EXPECT_LT(*std::min_element(seen.begin(), seen.end()), 0.77 * workload::kHostUs);
  EXPECT_GT(*std::max_element(seen.begin(), seen.end()), 1.3 * workload::kHostUs);
  options.host_us = 700;
  EXPECT_EQ(*drawn(options, {0, kDraws}).host_us, 700);
}

// The runs that were recorded with CC off and on, where they are at hand.
TEST(ServingEstimate, RecordedRunsAreForetold) {
  const std::string data = SEALANE_SHARED_DATA;
  if (!std::filesystem::exists(std::filesystem::path(data) / "nsys"))
    GTEST_SKIP() << "no traces in " << data;
  const auto checks = check_traces(data, *find_platform(kTracedPlatform));
  ASSERT_TRUE(checks) << checks.error().message;
  ASSERT_EQ(checks->size(), 4u);
  std::vector<double> errors;
  for (const Check& check : *checks) {
    errors.push_back(std::abs(check.error()));
    EXPECT_LE(errors.back(), 40) << check.what;
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE((errors[1] + errors[2]) / 2, 15);
}

}  // namespace
}  // namespace sealane::estimate
