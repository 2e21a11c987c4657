// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do scenario files mean what they say, and can a scenario fail?

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "scenario/scenario.h"
#include "scenario/target.h"
#include "workload/program_checker.h"
#include "workload/trace.h"

namespace sealane::test {
namespace {

std::string error_of(const std::string& text) {
  const auto scenario = parse_scenario("# title\n" + text, "x.txt");
  return scenario ? "accepted" : scenario.error().message;
}

std::vector<std::string> program_of(const std::string& text) {
  const auto scenario = parse_scenario("# title\n" + text + "expect ok\n", "x.txt");
  EXPECT_TRUE(scenario) << scenario.error().message;
  std::vector<std::string> lines;
  workload::ProgramChecker checker;
  for (const workload::Operation& operation : scenario->program) {
    EXPECT_TRUE(checker.check(operation));
    lines.push_back(workload::to_text(operation.action));
  }
  return lines;
}

TEST(ScenarioParser, BuffersAndStreamsAppearWhenTheyAreNamed) {
  EXPECT_EQ(program_of("copy h2d 0x10 4M\ntouch 0x10 4K at 1M\nsync\n"),
            (std::vector<std::string>{
                "create context c1",
                "alloc host pinned 0x7f0000000000 4194304",
                "alloc device c1 0x1000000000 4194304",
                "create stream s1 c1 nonblocking",
                "copy h2d s1 0x1000000000 0x7f0000000000 4194304 pinned async",
                "write 0x7f0000100000 4096",
                "sync context c1",
            }));
}

TEST(ScenarioParser, RepeatsNest) {
  const auto lines = program_of("repeat 2\nkernel 1us\nrepeat 3\nkernel 2us\nend\nend\n");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "launch s1 1000"), 2);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "launch s1 2000"), 6);
}

TEST(ScenarioParser, ShufflesKeepAllStatementsAndBlocksTogether) {
  const std::string shuffle =
      "shuffle\nkernel 1us\nkernel 2us\nrepeat 1\nkernel 3us\nkernel 4us\nend\nkernel 5us\nend\n";
  auto lines = program_of("repeat 50\n" + shuffle + "end\n");
  std::vector<std::vector<std::string>> orders;
  for (size_t i = 2; i + 5 <= lines.size(); i += 5) {  // behind the context and the stream
    const auto at = lines.begin() + static_cast<std::ptrdiff_t>(i);
    orders.emplace_back(at, at + 5);
    EXPECT_EQ(*(std::find(at, at + 5, "launch s1 3000") + 1), "launch s1 4000");
    std::sort(at, at + 5);
    EXPECT_EQ(std::vector<std::string>(at, at + 5),
              (std::vector<std::string>{"launch s1 1000", "launch s1 2000", "launch s1 3000",
                                        "launch s1 4000", "launch s1 5000"}));
  }
  ASSERT_EQ(orders.size(), 50u);
  EXPECT_NE(std::count(orders.begin(), orders.end(), orders[0]), 50);
  EXPECT_EQ(program_of(shuffle), program_of(shuffle)) << "the same in every run";
}

TEST(ScenarioParser, AFreedBufferIsAllocatedAgainWhenItIsUsed) {
  const auto lines = program_of("touch a 4K\nfree a\ntouch a\n");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "alloc host pinned 0x7f0000000000 4096"), 2);
}

TEST(ScenarioParser, Mistakes) {
  EXPECT_EQ(error_of("kernel 1us\n"), "x.txt: expects nothing");
  EXPECT_EQ(error_of("jump 1\n"), "x.txt:2: unknown statement 'jump 1'");
  EXPECT_EQ(error_of("copy h2d a\n"), "x.txt:2: 'a' is new: say how large it is");
  EXPECT_EQ(error_of("copy h2d a 4M\ncopy h2d a 4M at 1M\n"),
            "x.txt:3: that is beyond the end of 'a'");
  EXPECT_EQ(error_of("copy h2d a 4M now\n"), "x.txt:2: did not expect 'now'");
  EXPECT_EQ(error_of("kernel 5\n"), "x.txt:2: expected 'kernel TIME', as in 'kernel 2ms'");
  EXPECT_EQ(error_of("repeat 2\nkernel 1us\n"), "x.txt:2: this 'repeat' has no 'end'");
  EXPECT_EQ(error_of("expect luck 3\n"), "x.txt:2: nothing is counted as 'luck'");
  EXPECT_EQ(error_of("kernel 1us\nworkers 2\n"), "x.txt:3: the setup comes before the program");
  EXPECT_EQ(error_of("free a\n"), "x.txt:2: there is no buffer 'a' to free");
  EXPECT_EQ(error_of("shuffle\nkernel 1us\n"), "x.txt:2: this 'shuffle' has no 'end'");
  EXPECT_EQ(error_of("kernel 1us\nexpect hit 3 under pipellm\n"),
            "x.txt:3: did not expect 'under'");
  EXPECT_EQ(error_of("kernel 1us\nrotate\nexpect ok\n"),
            "x.txt: the last fault is followed by nothing that could suffer");
}

TEST(ScenarioParser, EveryFileIsAProgram) {
  for (const auto& entry : std::filesystem::directory_iterator(SEALANE_SCENARIOS)) {
    if (entry.path().extension() != ".txt") continue;
    const auto scenario = load_scenario(entry.path().string());
    ASSERT_TRUE(scenario) << scenario.error().message;
    workload::ProgramChecker checker;
    for (const workload::Operation& operation : scenario->program) {
      const Status status = checker.check(operation);
      ASSERT_TRUE(status) << entry.path() << ": " << status.error().message;
    }
  }
}

// A target that saw whatever it is told: counters grow with the operations run.
class FakeTarget final : public ScenarioTarget {
 public:
  struct Seen final : Observation {
    std::string violation() const override { return broken; }
    std::string error() const override { return failed; }
    std::optional<uint64_t> counter(std::string_view name) const override {
      if (name == "hit") return operations;
      return std::nullopt;
    }
    std::optional<Duration> elapsed() const override { return time; }

    uint64_t operations = 0;
    std::string broken;
    std::string failed;
    Duration time{0};
  };

  bool judges(const Expectation& expected) const override { return !expected.live; }
  Result<std::unique_ptr<Observation>> run(const Scenario& scenario) override {
    auto seen = std::make_unique<Seen>(template_);
    seen->operations = scenario.program.size();
    if (scenario.setup.policy == "stock") seen->time = Duration(100);
    return std::unique_ptr<Observation>(std::move(seen));
  }

  Seen template_;
};

std::vector<std::string> failures(const std::string& text, const FakeTarget::Seen& seen = {}) {
  const auto scenario = parse_scenario("# title\n" + text, "x.txt");
  if (!scenario) return {scenario.error().message};
  FakeTarget target;
  target.template_ = seen;
  return run_scenario(*scenario, target);
}

TEST(ScenarioRunner, CountersAreCountedSinceTheMark) {
  // A context, a stream and a launch, then one more launch.
  EXPECT_EQ(failures("kernel 1us\nexpect hit 3\nmark\nkernel 1us\nexpect hit 1\n"),
            std::vector<std::string>{});
  EXPECT_EQ(failures("kernel 1us\nexpect hit 2\nexpect hit at most 2\nexpect hit at least 3\n"),
            (std::vector<std::string>{"x.txt:3: expected hit 2, saw 3",
                                      "x.txt:4: expected hit at most 2, saw 3"}));
}

TEST(ScenarioRunner, WhatIsExpectedLiveCountsFromTheBeginning) {
  const auto scenario = parse_scenario(
      "# title\nkernel 1us\nmark\nkernel 1us\nexpect live hit at least 3 under pipellm\n", "x.txt");
  ASSERT_TRUE(scenario) << scenario.error().message;
  ASSERT_EQ(scenario->expectations.size(), 1u);
  const Expectation& expected = scenario->expectations[0];
  EXPECT_TRUE(expected.live);
  EXPECT_EQ(expected.under, "pipellm");
  EXPECT_EQ(expected.since, 0u);
  EXPECT_EQ(failures("kernel 1us\nexpect live hit 99\nexpect ok\n"), std::vector<std::string>{});
}

TEST(ScenarioRunner, WhatATargetCannotSeeIsNotJudged) {
  EXPECT_EQ(failures("kernel 1us\nexpect padded 7\n"), std::vector<std::string>{});
}

TEST(ScenarioRunner, ErrorsViolationsAndSlownessFail) {
  FakeTarget::Seen seen;
  seen.failed = "the lane is dead";
  EXPECT_EQ(failures("kernel 1us\nexpect ok\nexpect error\n", seen),
            std::vector<std::string>{"x.txt:3: expected ok, the program got: the lane is dead"});
  EXPECT_EQ(failures("kernel 1us\nexpect error\n"),
            std::vector<std::string>{"x.txt:3: expected an error, saw none"});
  seen = {};
  seen.broken = "stale bytes";
  EXPECT_EQ(failures("kernel 1us\nexpect ok\n", seen),
            std::vector<std::string>{"x.txt: stale bytes"});
  seen = {};
  seen.time = Duration(103);
  EXPECT_EQ(failures("kernel 1us\nexpect as fast as stock\n", seen),
            std::vector<std::string>{"x.txt:3: took 103 % of stock's time"});
}

}  // namespace
}  // namespace sealane::test
