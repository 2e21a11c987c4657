// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are the models as large as they should be, and are the engines' programs programs?

#include "workload/serving/serving.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workload/program_checker.h"
#include "workload/serving/requests.h"

namespace sealane::workload {
namespace {

constexpr Roofline kGpu{.flops_per_s = 500e12,
                        .bytes_per_s = 2.7e12,
                        .gpu_bytes = 80'000'000'000,
                        .host_bytes = 1'000'000'000'000};

TEST(Model, IsAsLargeAsItsName) {
  for (const auto& [name, parameters] :
       std::vector<std::pair<const char*, double>>{{"opt-13b", 12.85e9},
                                                   {"opt-30b", 29.97e9},
                                                   {"opt-66b", 65.7e9},
                                                   {"opt-175b", 174.6e9},
                                                   {"llama-3-8b", 8.03e9},
                                                   {"llama-3-70b", 70.55e9}}) {
    const Model* model = find_model(name);
    ASSERT_NE(model, nullptr) << name;
    EXPECT_NEAR(static_cast<double>(model->bytes()) / 2 / parameters, 1, 0.005) << name;
  }
  EXPECT_EQ(find_model("opt-30b")->kv_bytes_per_token(), 48u * 4 * 7168);
  EXPECT_EQ(find_model("opt-31b"), nullptr);
}

TEST(Model, SmallBatchesReadWeightsAndLargeOnesCompute) {
  const Model& model = *find_model("opt-30b");
  const double weights = static_cast<double>(model.layer_bytes()) / kGpu.bytes_per_s;
  const auto one = layer_time(model, kGpu, Batch::decode(1, 100));
  EXPECT_NEAR(static_cast<double>(one.count()) / 1e9 / weights, 1, 0.01);
  const double flops = 2.0 * static_cast<double>(model.layer_parameters()) * 8192;
  const auto many = layer_time(model, kGpu, Batch::prefill(8, 1024));
  EXPECT_GT(static_cast<double>(many.count()) / 1e9, flops / kGpu.flops_per_s);
}

// Runs a feed on a machine where every call takes a millisecond.
struct Trial {
  Program program;
  Achieved achieved;
  std::string wrong;
};
Trial run(Feed& feed) {
  Trial result;
  ProgramChecker checker;
  Instant now{};
  Program part;
  bool more = true;
  while (more) {
    part.clear();
    more = feed.extend(now, part);
    for (const Operation& operation : part) {
      const Status status = checker.check(operation);
      if (!status && result.wrong.empty()) result.wrong = status.error().message;
      now += operation.think + Duration(1'000'000);
    }
    result.program.insert(result.program.end(), part.begin(), part.end());
  }
  result.achieved = feed.achieved();
  return result;
}

ServingOptions short_run(uint64_t seed) {
  ServingOptions options;
  options.seed = seed;
  options.steps = 2;
  options.minutes = 2;
  options.swap_unit = SwapUnit::layer;
  return options;
}

TEST(Serving, EveryEngineWritesAProgramAndAchievesSomething) {
  for (const Serving& serving : servings()) {
    const char* name = serving.name == "flexgen" || serving.name == "peft" ? "opt-13b" : "opt-30b";
    auto feed = make_serving(serving, *find_model(name), kGpu, short_run(1));
    ASSERT_TRUE(feed) << serving.name << ": " << feed.error().message;
    const Trial result = run(**feed);
    EXPECT_EQ(result.wrong, "") << serving.name;
    EXPECT_GT(result.achieved.units, 0) << serving.name;
    EXPECT_GT(result.achieved.time, Duration{0}) << serving.name;
  }
}

TEST(Serving, OneSeedIsOneProgram) {
  const Serving& vllm = *find_serving("vllm");
  const Model& model = *find_model("opt-30b");
  const Program first = run(**make_serving(vllm, model, kGpu, short_run(7))).program;
  EXPECT_EQ(run(**make_serving(vllm, model, kGpu, short_run(7))).program, first);
  EXPECT_NE(run(**make_serving(vllm, model, kGpu, short_run(8))).program, first);
}

// The same work in one launch, in some, or in one for each kernel.
TEST(Serving, AStepIsLaunchedAsTold) {
  const Model& model = *find_model("llama-3-8b");
  const auto launches = [&](Graphs graphs) {
    ServingOptions options = short_run(1);
    options.graphs = graphs;
    options.step_ms = 2;
    std::pair<uint64_t, Duration> result{0, Duration{0}};
    auto feed = make_serving(*find_serving("decode"), model, kGpu, options);
    for (const Operation& operation : run(**feed).program) {
      const auto* launch = std::get_if<Launch>(&operation.action);
      if (launch == nullptr) continue;
      ++result.first;
      result.second += launch->run_time;
    }
    return result;
  };
  constexpr uint64_t kSteps = 7;  // two, after five to warm up
  const auto full = launches(Graphs::full);
  EXPECT_EQ(full.first, kSteps);
  EXPECT_EQ(launches(Graphs::piecewise).first, kSteps * (3 * model.layers + 1));
  EXPECT_EQ(launches(Graphs::none).first, kSteps * (10 * model.layers + 10));
  for (const Graphs graphs : {Graphs::piecewise, Graphs::none}) {
    EXPECT_EQ(launches(graphs).second, full.second) << "another amount of work";
  }
}

TEST(Serving, AStepWithoutCopiesHasNone) {
  ServingOptions options = short_run(1);
  options.step_copies = 0;
  auto feed = make_serving(*find_serving("decode"), *find_model("llama-3-8b"), kGpu, options);
  for (const Operation& operation : run(**feed).program) {
    EXPECT_EQ(std::get_if<Copy>(&operation.action), nullptr);
  }
}

// Whatever is swapped out comes back, as the same ranges, before it is swapped out again.
TEST(Serving, VllmBringsBackWhatItSwappedOut) {
  auto feed = make_serving(*find_serving("vllm"), *find_model("opt-30b"), kGpu, short_run(3));
  const Program program = run(**feed).program;
  std::map<uint64_t, uint64_t> out;  // address to bytes
  uint64_t returned = 0;
  for (const Operation& operation : program) {
    const auto* copy = std::get_if<Copy>(&operation.action);
    if (copy == nullptr || copy->host.bytes < 128 << 10) continue;
    if (copy->direction == Direction::to_host) {
      EXPECT_TRUE(out.emplace(copy->host.address, copy->host.bytes).second) << "swapped out twice";
    } else {
      const auto found = out.find(copy->host.address);
      ASSERT_NE(found, out.end()) << "came back without having gone";
      EXPECT_EQ(found->second, copy->host.bytes);
      out.erase(found);
      ++returned;
    }
  }
  EXPECT_GT(returned, 0u) << "nobody was ever swapped: the test shows nothing";
}

TEST(Serving, WhatDoesNotFitIsRefusedInOneLine) {
  const auto refused = [](const char* serving, const char* model, const Roofline& gpu) {
    const auto feed = make_serving(*find_serving(serving), *find_model(model), gpu, {});
    return feed ? std::string("accepted") : feed.error().message;
  };
  Roofline small = kGpu;
  small.host_bytes = 100'000'000'000;
  EXPECT_EQ(
      refused("flexgen", "opt-175b", small),
      "opt-175b needs 348 GB of host memory, the platform has 100 GB: take a smaller model or "
      "batch, or another platform");
  EXPECT_NE(refused("vllm", "opt-66b", kGpu).find("needs"), std::string::npos);
  EXPECT_NE(refused("decode", "llama-3-70b", kGpu).find("GPU memory"), std::string::npos);
  EXPECT_EQ(refused("vllm", "opt-30b", kGpu), "accepted");
}

TEST(Requests, HaveThePublishedMeans) {
  for (const auto& [lengths, in, out] :
       {std::tuple(Lengths::alpaca, 19.3, 58.5), std::tuple(Lengths::sharegpt, 161.3, 338.0)}) {
    Requests requests(lengths, 2, 5);
    double prompts = 0;
    double answers = 0;
    constexpr int kDrawn = 20'000;
    Instant last{};
    for (int i = 0; i < kDrawn; ++i) {
      const Request request = requests.take({});
      prompts += static_cast<double>(request.prompt);
      answers += static_cast<double>(request.answer);
      EXPECT_GE(request.arrived, last);
      last = request.arrived;
    }
    EXPECT_NEAR(prompts / kDrawn / in, 1, 0.05);
    EXPECT_NEAR(answers / kDrawn / out, 1, 0.06);  // the longest are cut
    EXPECT_NEAR(static_cast<double>(last.time_since_epoch().count()) / 1e9, kDrawn / 2.0, 300);
  }
}

}  // namespace
}  // namespace sealane::workload
