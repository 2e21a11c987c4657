// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the engines that were recorded (tests/traces) keep every promise in the simulated machine, as
// they were and disturbed, and how often are their copies foreseen?

#include "sim/recorded.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "platform/reader.h"
#include "workload/trace.h"

namespace sealane::sim {
namespace {

struct Recorded {
  std::string name;
  workload::Program program;
};

const std::vector<Recorded>& recorded() {
  static const std::vector<Recorded> all = [] {
    std::vector<Recorded> found;
    for (const auto& file : std::filesystem::directory_iterator(SEALANE_TRACE_FILES)) {
      if (file.path().extension() != ".trace") continue;
      auto program = workload::load_trace(file.path().string());
      EXPECT_TRUE(program.ok()) << file.path();
      if (program) found.push_back({file.path().stem().string(), *std::move(program)});
    }
    return found;
  }();
  return all;
}

Platform platform() {
  auto found = load_platform(SEALANE_PLATFORM_FILES "/h100-tdx.toml");
  EXPECT_TRUE(found.ok());
  return *found;
}

Outcome run(const Recorded& one, uint64_t seed, const char* policy) {
  Case made = make_recorded_case(one.program, seed, platform());
  made.setup.policy = *find_policy(policy);
  return simulate(made.program, made.setup);
}

TEST(Recorded, ThereAreEnginesToJudge) { EXPECT_GE(recorded().size(), 6u); }

TEST(Recorded, EveryPromiseIsKeptUnderEveryPolicyAsItWasAndDisturbed) {
  for (const Recorded& one : recorded()) {
    for (const Policy& policy : policies()) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        const Outcome outcome = run(one, seed, std::string(policy.name).c_str());
        ASSERT_FALSE(outcome.violation)
            << one.name << " under " << policy.name << ", seed " << seed << ": "
            << outcome.violation->rule << ": " << outcome.violation->what;
        EXPECT_FALSE(seed == 0 && outcome.error) << one.name << ": " << outcome.error.value_or("");
      }
    }
  }
}

TEST(Recorded, ThePartThatAProgramTimesIsFound) {
  using namespace workload;  // NOLINT: a program is written down here
  const StreamId stream{1};
  const auto add = [](Program& to, Action action) {
    to.emplace_back();
    to.back().action = std::move(action);
  };
  Program program;
  add(program, CreateContext{ContextId{1}});
  add(program, CreateStream{stream, ContextId{1}, StreamKind::non_blocking});
  add(program, CreateEvent{EventId{1}});
  add(program, Launch{stream, Duration{70'000}});
  add(program, RecordEvent{EventId{1}, stream});
  add(program, SyncEvent{EventId{1}});
  EXPECT_FALSE(find_timed_part(program)) << "one event is no clock";
  add(program, CreateEvent{EventId{2}});
  add(program, CreateEvent{EventId{3}});
  add(program, RecordEvent{EventId{2}, stream});
  const size_t begin = program.size() - 1;
  add(program, Launch{stream, Duration{500'000}});
  add(program, RecordEvent{EventId{3}, stream});
  EXPECT_FALSE(find_timed_part(program)) << "nobody has waited for it";
  add(program, SyncEvent{EventId{3}});
  const size_t end = program.size();
  add(program, Launch{stream, Duration{900'000}});
  add(program, SyncStream{stream});

  const auto part = find_timed_part(program);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, begin);
  EXPECT_EQ(part->end, end);
  sim::Setup setup;
  setup.platform = platform();
  setup.policy = *find_policy("off");
  const Duration time = simulate_part(program, *part, setup);
  EXPECT_GE(time, Duration{500'000});
  EXPECT_LE(time, Duration{520'000}) << "a launch, and what the device takes to begin";
}

TEST(Recorded, SeedsDisturbAndSeedNoughtDoesNot) {
  uint64_t faults = 0;
  for (const Recorded& one : recorded()) {
    EXPECT_EQ(run(one, 0, "speculate").counters.faults, 0u) << one.name;
    for (uint64_t seed = 1; seed < 6; ++seed) faults += run(one, seed, "speculate").counters.faults;
  }
  EXPECT_GT(faults, 0u);
}

TEST(Recorded, OursIsNotSlowerThanStock) {
  for (const Recorded& one : recorded()) {
    const auto stock = run(one, 0, "stock").elapsed;
    for (const char* policy : {"parallel", "sealane", "speculate"}) {
      EXPECT_LE(static_cast<double>(run(one, 0, policy).elapsed.count()),
                1.02 * static_cast<double>(stock.count()))
          << one.name << " under " << policy;
    }
  }
}

// Weights that cross in every step are what prediction is for. The first figures, untuned, are in
// docs/results/engines-pytorch-hits.txt.
TEST(Recorded, OffloadedWeightsAreForeseen) {
  size_t judged = 0;
  for (const Recorded& one : recorded()) {
    if (one.name != "transformers" && one.name != "flexgen" && one.name != "peft") continue;
    ++judged;
    const RecordedHits hits = measure_hits(one.program, platform());
    EXPECT_GT(hits.ours.copies, 50u) << one.name;
    EXPECT_GT(hits.tournament, 0.5) << one.name;
    EXPECT_EQ(hits.contestants.size(), 8u);
  }
  EXPECT_EQ(judged, 3u);
}

}  // namespace
}  // namespace sealane::sim
