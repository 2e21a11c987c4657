// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can the simulator find anything, and does it find nothing? And what the runtime promises about
// speed, on the first platform: the bench prints the figures, the tests hold them with slack.

#include "sim/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "platform/cost.h"
#include "platform/reader.h"
#include "sim/memory.h"
#include "workload/patterns.h"

namespace sealane::sim {
namespace {

Platform platform(const char* name = "h100-nvl-tdx") {
  auto found = load_platform(std::string(SEALANE_PLATFORM_FILES "/") + name + ".toml");
  EXPECT_TRUE(found.ok());
  return *found;
}

SimOptions seeds(Mode mode, uint64_t count) {
  SimOptions options;
  options.last_seed = count - 1;
  options.mode = mode;
  options.platform = platform();
  options.platform_name = "h100-nvl-tdx";
  options.compare_stock = false;
  return options;
}

// --- what launches cost

workload::Program launches(int count, Duration each) {
  using namespace workload;
  Program program;
  const auto call = [&](Action action) {
    Operation operation;
    operation.action = std::move(action);
    program.push_back(std::move(operation));
  };
  call(CreateContext{ContextId{1}});
  call(CreateStream{StreamId{1}, ContextId{1}, StreamKind::non_blocking});
  for (int i = 0; i < count; ++i) call(Launch{StreamId{1}, each});
  call(SyncStream{StreamId{1}});
  return program;
}

Duration time_of(const workload::Program& program, const Platform& where, const char* policy) {
  Setup setup;
  setup.platform = where;
  setup.policy = *find_policy(policy);
  const Outcome outcome = simulate(program, setup);
  EXPECT_FALSE(outcome.violation);
  return outcome.elapsed;
}

// A kernel that waits behind another has been handed over meanwhile: CC does not show.
TEST(Launches, QueuedKernelsFollowEachOtherAsFastWithCc) {
  Platform where = platform();
  where.gpu.kernel_slowdown = 0;
  constexpr Duration kEach{100'000};
  constexpr int kCount = 50;
  const Duration off = time_of(launches(kCount, kEach), where, "off");
  const Duration on = time_of(launches(kCount, kEach), where, "stock");
  const Duration first = launch_time(where.gpu, true) - launch_time(where.gpu, false) +
                         queue_time(where.gpu, true) - queue_time(where.gpu, false);
  EXPECT_EQ(on - off, first) << "more than the first launch is slower";
}

// One that finds the device idle starts when its launch is over and it has arrived.
TEST(Launches, ALoneKernelWaitsForItsLaunchAndItsWay) {
  const Platform where = platform();
  for (const bool cc : {false, true}) {
    const Duration none = time_of(launches(0, {}), where, cc ? "stock" : "off");
    const Duration one = time_of(launches(1, Duration{10'000}), where, cc ? "stock" : "off");
    EXPECT_EQ(one - none, launch_time(where.gpu, cc) + queue_time(where.gpu, cc) +
                              kernel_time(where.gpu, cc, Duration{10'000}))
        << cc;
  }
}

// Short kernels wait for the host, and the host takes longer with CC.
TEST(Launches, ShortKernelsAreAsSlowAsTheirLaunches) {
  const Platform where = platform();
  constexpr int kCount = 1000;
  const auto off = time_of(launches(kCount, Duration{1'000}), where, "off");
  const auto on = time_of(launches(kCount, Duration{1'000}), where, "stock");
  EXPECT_NEAR(static_cast<double>(on.count()) / static_cast<double>(off.count()),
              where.gpu.launch_cc_us / where.gpu.launch_off_us, 0.02);
}

TEST(Launches, OtherCallsThatReachTheDeviceAreChargedWithCcOnly) {
  const Platform where = platform();
  using namespace workload;
  Program program = launches(0, {});
  Operation operation;
  operation.action = CreateEvent{EventId{1}};
  program.push_back(operation);
  operation.action = RecordEvent{EventId{1}, StreamId{1}};
  program.push_back(operation);
  operation.action = AllocateDevice{ContextId{1}, 0x1000, 4096};
  program.push_back(operation);
  operation.action = FreeDevice{0x1000};
  program.push_back(operation);
  const auto off = time_of(program, where, "off");
  EXPECT_EQ(time_of(program, where, "stock") - off, 4 * call_surcharge(where.gpu, true));
}

// An event record takes its caller as long whoever makes it: a copy that is carried needs one,
// those that follow it in a run do not.
TEST(Launches, AnEventOfOursCostsWhatOneOfTheProgramsDoes) {
  using namespace workload;
  const Platform where = platform();
  Platform free = where;
  free.gpu.call_cc_us = 0;
  constexpr uint64_t kBytes = 4096;
  const auto copies = [&](bool apart) {
    Program program = launches(0, {});
    Operation operation;
    operation.action = AllocateHost{{0x7f0000000000, 2 * kBytes}, MemoryKind::pinned};
    program.push_back(operation);
    for (const uint64_t at : {uint64_t{0}, kBytes}) {
      if (at > 0 && apart) {
        operation.action = Launch{StreamId{1}, Duration{1'000}};
        program.push_back(operation);
      }
      operation.action = Copy{StreamId{1},   Direction::to_device, {0x7f0000000000 + at, kBytes},
                              0x100000 + at, MemoryKind::pinned,   CallKind::async};
      program.push_back(operation);
    }
    return program;
  };
  const auto paid = [&](const Program& program) {
    return time_of(program, where, "parallel") - time_of(program, free, "parallel");
  };
  EXPECT_EQ(paid(copies(false)), call_surcharge(where.gpu, true));
  EXPECT_EQ(paid(copies(true)), 2 * call_surcharge(where.gpu, true));
}

// A copy is handed to its thread when the call has put all it needs into the stream: whoever waits
// for the copy waits for the event record, too.
TEST(Launches, NothingIsCarriedBeforeItsCallIsOver) {
  using namespace workload;
  const Platform where = platform();
  Platform free = where;
  free.gpu.call_cc_us = 0;
  Program program = launches(0, {});
  Operation operation;
  operation.action = AllocateHost{{0x7f0000000000, 4096}, MemoryKind::pinned};
  program.push_back(operation);
  operation.action = Copy{StreamId{1}, Direction::to_device, {0x7f0000000000, 4096},
                          0x100000,    MemoryKind::pinned,   CallKind::async};
  program.push_back(operation);
  operation.action = SyncStream{StreamId{1}};
  program.push_back(operation);
  EXPECT_EQ(time_of(program, where, "parallel") - time_of(program, free, "parallel"),
            call_surcharge(where.gpu, true));
}

// Cores that seal are paid for, also those that seal only when a copy is asked for.
TEST(Sim, EveryCoreThatSealsIsCounted) {
  using namespace workload;
  Program program = launches(0, {});
  constexpr uint64_t kBytes = 64 << 20;
  Operation operation;
  operation.action = AllocateHost{{0x7f0000000000, kBytes}, MemoryKind::pinned};
  program.push_back(operation);
  operation.action = workload::Copy{StreamId{1}, Direction::to_device, {0x7f0000000000, kBytes},
                                    0x300000000, MemoryKind::pinned,   CallKind::async};
  program.push_back(operation);
  operation.action = SyncStream{StreamId{1}};
  program.push_back(operation);
  sim::Setup setup;
  setup.platform = platform();
  setup.policy = *find_policy("parallel");
  const Duration one_core = fast_aead_time(setup.platform.host, kBytes);
  const Duration busy = simulate(program, setup).counters.workers_busy;
  EXPECT_GE(busy, one_core) << "bytes were sealed by nobody";
  EXPECT_LE(busy, 3 * one_core);
  setup.policy = *find_policy("stock");
  EXPECT_EQ(simulate(program, setup).counters.workers_busy, Duration{0});
}

// --- what digests cost

// Twenty periods of copies of 4 MiB, each foreseen, guarded by digests or by pages, and asked for
// when the kernel before it has ended.
Outcome repeat(const Platform& where, bool page_guards, Duration kernel) {
  workload::PatternOptions options;
  options.steps = 20;
  options.lockstep = true;
  options.kernel = kernel;
  Setup setup;
  setup.platform = where;
  setup.policy = *find_policy("speculate");
  setup.workers = 7;
  setup.page_guards = page_guards;
  return simulate(workload::make_pattern(workload::Pattern::repetition, options), setup);
}

// As the runtime does it: each message's by one worker, all at the same time. One thread for all of
// them made `speculate` take four times as long in the simulator as on the emulated GPU.
TEST(Digests, OfOneCopyAreComparedByAllWorkers) {
  constexpr Duration kLong{5'000'000};  // everything is sealed by then
  const Platform where = platform("h100-tdx");
  Platform fast = where;
  fast.guard.digest_gb_per_s = 1e6;
  const Outcome slower = repeat(where, false, kLong);
  const auto copies = static_cast<double>(slower.counters.bulk_requests);
  const auto each = static_cast<double>(digest_time(where.guard, 1_MiB).count());
  const Duration paid = slower.elapsed - repeat(fast, false, kLong).elapsed;
  EXPECT_GT(slower.counters.hit_rate(), 0.9);
  EXPECT_LE(static_cast<double>(paid.count()), 1.05 * copies * each);
  EXPECT_GE(static_cast<double>(paid.count()), 0.85 * copies * each);
}

// Whoever seals ahead reads and digests what he seals first: copies that come soon find more of it
// with a worker, and what he is reading then has no digest to be compared.
TEST(Digests, AreMadeBeforeAnythingIsSealed) {
  constexpr Duration kShort{60'000};
  const Platform where = platform("h100-tdx");
  const Counters pages = repeat(where, true, kShort).counters;
  const Counters digests = repeat(where, false, kShort).counters;
  EXPECT_GT(pages.hit_rate(), 0.9);
  EXPECT_LT(digests.messages_ready, pages.messages_ready);
  EXPECT_LT(digests.hit_rate(), pages.hit_rate());
}

class Modes : public ::testing::TestWithParam<Mode> {};

TEST_P(Modes, FindNothing) {
  for (const char* policy : {"parallel", "sealane", "speculate", "pipellm"}) {
    SimOptions options = seeds(GetParam(), 40);
    options.policy = policy;
    const auto outcome = run(options);
    ASSERT_TRUE(outcome.ok());
    for (const Violation& each : outcome->violations)
      ADD_FAILURE() << each.what << "\n" << each.replay;
    EXPECT_EQ(outcome->seeds, 40U);
    EXPECT_GT(outcome->counters.rotations, 0U);
  }
}

// The promise is that of the policy that ships. Sealing ahead forced on where it does not pay costs
// what it costs: all bulk copies are one thread's.
TEST_P(Modes, AreNeverWorseThanStock) {
  const std::pair<const char*, double> bounds[] = {{"sealane", 1.02}, {"speculate", 1.15}};
  for (const char* name : {"h100-nvl-tdx", "h100-tdx", "h100-sev"}) {
    for (const auto& [policy, most] : bounds) {
      SimOptions options = seeds(GetParam(), most < 1.1 ? 60 : 25);
      options.platform = platform(name);
      options.policy = policy;
      options.compare_stock = true;
      const auto outcome = run(options);
      ASSERT_TRUE(outcome.ok());
      EXPECT_LE(outcome->vs_stock_worst, most)
          << policy << " on " << name << ", seed " << outcome->vs_stock_worst_seed;
      EXPECT_GT(outcome->vs_stock_worst, 0.1);
    }
  }
}

// The driver carries the bulk copies of several contexts at a time. On one thread for all of them
// they took 1.039 times as long.
TEST(Sim, BulkCopiesOfSeveralContextsDoNotTakeTurns) {
  SimOptions options;
  options.first_seed = options.last_seed = 20;
  options.ops = 500;
  options.mode = Mode::adversarial;
  options.platform = platform("h100-nvl-aesni");
  options.policy = "sealane";
  const auto outcome = run(options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_LE(outcome->vs_stock_worst, 1.02);
  EXPECT_GT(outcome->vs_stock_worst, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Sim, Modes, ::testing::Values(Mode::swarm, Mode::serve, Mode::adversarial),
                         [](const auto& each) { return std::string(to_string(each.param)); });

// Every rule that the core can be made to break, and what the judge says then.
const std::map<std::string_view, std::set<std::string>> kNoticedAs = {
    {"order", {"order"}},
    {"run", {"order"}},
    {"legacy", {"order"}},
    {"landing", {"order"}},
    {"early-read", {"order"}},
    {"gate", {"order", "sync"}},
    {"gate-order", {"order", "sync"}},
    {"snapshot", {"stale"}},
    {"read-at-turn", {"stale"}},
    {"verify-before-use", {"verify-before-use", "order"}},    // what is not there is not done
    {"run-behind-forgery", {"run-behind-forgery", "order"}},  // what is forged is never done
    {"fail-first", {"run-behind-forgery"}},
    {"deliver-after-failure", {"deliver-after-failure", "order"}},
    {"wipe", {"wipe"}},
    {"message-match", {"message-match", "iv-order"}},
    {"capture", {"capture"}},
    {"freed-range", {"freed-range", "stale"}},
    {"iv-once", {"iv-once"}},
    {"stale", {"stale"}},
    {"stale-at-turn", {"stale"}},
    {"unseen-writer", {"stale"}},
    {"budget", {"budget"}},
    {"rotation", {"rotation"}},
};

class BrokenRules : public ::testing::TestWithParam<std::string_view> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BrokenRules);  // a build without mutants

TEST_P(BrokenRules, AreFoundWithin200Seeds) {
  SimOptions options = seeds(Mode::swarm, 200);
  options.break_rule = GetParam();
  const auto outcome = run(options);
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->violations.size(), 1U);
  const Violation& found = outcome->violations[0];
  EXPECT_TRUE(kNoticedAs.at(GetParam()).contains(found.rule)) << found.rule << ": " << found.what;
  EXPECT_FALSE(found.history.empty());
  EXPECT_NE(found.replay.find("--break " + options.break_rule), std::string::npos);

  // The replay shows the same.
  options.first_seed = options.last_seed = found.seed;
  const auto again = run(options);
  ASSERT_EQ(again->violations.size(), 1U);
  EXPECT_EQ(again->violations[0].what, found.what);
  EXPECT_EQ(again->violations[0].history, found.history);
}

INSTANTIATE_TEST_SUITE_P(Sim, BrokenRules, ::testing::ValuesIn(rule_names()), [](const auto& each) {
  std::string name(each.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Who may write a source between the request of its copy and the copy's turn, and the rule that no
// list of them is needed for.
struct HostWriter {
  const char* name;
  const char* rule;
  double mapped;  // the device can write the memory
  void (*write_and_copy)(workload::Program& program, const workload::Copy& copy);
};

void add(workload::Program& program, workload::Action action) {
  workload::Operation operation;
  operation.action = std::move(action);
  program.push_back(std::move(operation));
}

constexpr Range first_half(const Range& range) { return {range.address, range.bytes / 2}; }

const HostWriter kHostWriters[] = {
    {"the host, while it holds the stream", "stale-at-turn", 0,
     [](workload::Program& program, const workload::Copy& copy) {
       const auto flag = static_cast<uint32_t>(program.size());
       add(program, workload::HoldStream{copy.stream, flag});
       add(program, copy);
       add(program, workload::WriteHost{first_half(copy.host)});
       add(program, workload::RaiseFlag{flag});
     }},
    {"a host function", "stale-at-turn", 0,
     [](workload::Program& program, const workload::Copy& copy) {
       add(program, workload::StreamWork{copy.stream, workload::WorkKind::host_function,
                                         first_half(copy.host)});
       add(program, copy);
     }},
    {"the device, where guards see it", "stale-at-turn", 0,
     [](workload::Program& program, const workload::Copy& copy) {
       add(program, workload::StreamWork{copy.stream, workload::WorkKind::device_write,
                                         first_half(copy.host)});
       add(program, copy);
     }},
    {"the device, where no guard does", "unseen-writer", 1,
     [](workload::Program& program, const workload::Copy& copy) {
       add(program, workload::StreamWork{copy.stream, workload::WorkKind::device_write,
                                         first_half(copy.host)});
       add(program, copy);
     }},
};

// Four buffers in turn, long enough to be foreseen; now and then one is written late.
workload::Program late_writes(const HostWriter& writer) {
  constexpr workload::StreamId kStream{1};
  workload::Program program;
  add(program,
      workload::CreateStream{kStream, workload::ContextId{1}, workload::StreamKind::non_blocking});
  for (uint64_t i = 0; i < 4; ++i) {
    add(program, workload::AllocateHost{{(i + 1) << 30, 2_MiB}, MemoryKind::pinned});
  }
  for (uint64_t step = 0; step < 60; ++step) {
    for (uint64_t i = 0; i < 4; ++i) {
      const workload::Copy copy{kStream, Direction::to_device, {(i + 1) << 30, 2_MiB},
                                i << 30, MemoryKind::pinned,   workload::CallKind::async};
      add(program, workload::Launch{kStream, Duration(400'000)});
      const bool late = step > 10 && i == 2 && step % 7 == 0;
      late ? writer.write_and_copy(program, copy) : add(program, copy);
    }
    add(program, workload::SyncStream{kStream});
  }
  return program;
}

TEST(Sim, WhoeverWritesASourceBeforeItsTurnIsNoticed) {
  if (!kMutants) GTEST_SKIP() << "this build has no mutants";
  for (const HostWriter& writer : kHostWriters) {
    sim::Setup setup;
    setup.platform = platform();
    setup.policy = *find_policy("speculate");
    setup.mapped = writer.mapped;
    const workload::Program program = late_writes(writer);
    const Outcome whole = simulate(program, setup);
    EXPECT_FALSE(whole.violation.has_value()) << writer.name << ": " << whole.violation->what;
    ASSERT_TRUE(break_rule(setup.rules, writer.rule));
    const Outcome broken = simulate(program, setup);
    ASSERT_TRUE(broken.violation.has_value()) << writer.name;
    EXPECT_EQ(broken.violation->rule, "stale") << writer.name;
  }
}

TEST(Sim, OneSeedIsOneHistory) {
  const auto first = run(seeds(Mode::swarm, 5));
  const auto second = run(seeds(Mode::swarm, 5));
  EXPECT_EQ(to_json(*first), to_json(*second));
  EXPECT_EQ(first->counters.events, second->counters.events);
}

// A program that takes longer than it may, told by a bound made too short for any.
TEST(Sim, ARunThatDoesNotEndIsALivelock) {
  sim::Setup setup;
  setup.platform = platform();
  setup.policy = *find_policy("speculate");
  setup.patience = 1e-4;
  const auto program = workload::make_pattern(workload::Pattern::repetition, {});
  const Outcome outcome = simulate(program, setup);
  ASSERT_TRUE(outcome.violation.has_value());
  EXPECT_EQ(outcome.violation->rule, "livelock");
}

// The same copy, and each thing the bus can do to its second message.
TEST(Sim, WhatTheBusDoesIsToldApart) {
  const std::map<ScriptedFault::Kind, std::string> expected = {
      {ScriptedFault::Kind::flip, "that was changed"},
      {ScriptedFault::Kind::drop, "in place of a lost one"},
      {ScriptedFault::Kind::repeat, "for the second time"},
      {ScriptedFault::Kind::swap, "before its turn"}};
  for (const auto& [kind, what] : expected) {
    workload::PatternOptions options;
    options.steps = 1;
    options.buffers = 4;
    sim::Setup setup;
    setup.platform = platform();
    setup.policy = *find_policy("speculate");
    setup.script = {{.before = 12, .kind = kind}};
    const Outcome outcome =
        simulate(workload::make_pattern(workload::Pattern::repetition, options), setup);
    EXPECT_FALSE(outcome.violation.has_value()) << what;
    ASSERT_TRUE(outcome.error.has_value()) << what;
    EXPECT_NE(outcome.error->find(what), std::string::npos) << *outcome.error;
    EXPECT_EQ(outcome.counters.faults, 1U);
  }
}

// Nothing comes behind the last record of a program.
TEST(Sim, ALostLastRecordIsAnErrorALateOneIsNot) {
  for (const auto kind : {ScriptedFault::Kind::drop, ScriptedFault::Kind::swap}) {
    workload::PatternOptions options;
    options.steps = 1;
    options.buffers = 1;
    options.buffer_bytes = 256_KiB;
    sim::Setup setup;
    setup.platform = platform();
    setup.policy = *find_policy("speculate");
    setup.script = {{.before = 0, .kind = kind}};
    const Outcome outcome =
        simulate(workload::make_pattern(workload::Pattern::repetition, options), setup);
    EXPECT_FALSE(outcome.violation.has_value());
    EXPECT_EQ(outcome.error.has_value(), kind == ScriptedFault::Kind::drop);
  }
}

TEST(Sim, UnknownNamesAreUsageErrors) {
  SimOptions options = seeds(Mode::swarm, 1);
  options.policy = "magic";
  EXPECT_EQ(run(options).error().kind, ErrorKind::usage);
  options = seeds(Mode::swarm, 1);
  options.break_rule = "gravity";
  EXPECT_EQ(run(options).error().kind, ErrorKind::usage);
}

TEST(Sim, NothingIsSealedAheadForRandomCopies) {
  workload::PatternOptions options;
  options.steps = 20;
  sim::Setup setup;
  setup.platform = platform();
  setup.policy = *find_policy("speculate");
  const Outcome outcome =
      simulate(workload::make_pattern(workload::Pattern::random, options), setup);
  EXPECT_EQ(outcome.counters.messages_ready, 0U);
  EXPECT_EQ(outcome.counters.voided, 0U);
}

TEST(Sim, EveryPolicyRunsEveryPattern) {
  for (const workload::Pattern pattern : workload::patterns()) {
    Duration off{0};
    for (const Policy& policy : policies()) {
      workload::PatternOptions options;
      options.steps = 4;
      sim::Setup setup;
      setup.platform = platform();
      setup.policy = policy;
      const Outcome outcome = simulate(workload::make_pattern(pattern, options), setup);
      EXPECT_FALSE(outcome.violation.has_value()) << policy.name;
      if (policy.name == "off") off = outcome.elapsed;
      // Small copies that travel together may save a little even over CC off, and those from
      // pageable memory do not wait for their stream, as CUDA's own do.
      const double least = pattern == workload::Pattern::control ? 0.85 : 0.97;
      EXPECT_GE(outcome.elapsed.count(), least * static_cast<double>(off.count())) << policy.name;
    }
  }
}

TEST(Memory, TellsContentsApartToTheByte) {
  Memory memory;
  memory.write({100, 50});
  const uint64_t before = memory.fingerprint({100, 50});
  const uint64_t beside = memory.fingerprint({100, 10});
  memory.write({120, 1});
  EXPECT_NE(memory.fingerprint({100, 50}), before);
  EXPECT_EQ(memory.fingerprint({100, 10}), beside);
  EXPECT_EQ(memory.fingerprint({100, 20}), memory.fingerprint({100, 20}));
  EXPECT_NE(memory.fingerprint({119, 2}), memory.fingerprint({120, 2}));
}

}  // namespace
}  // namespace sealane::sim
