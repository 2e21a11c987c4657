// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what seals ahead for a copy thread keep out of that thread's way?

#include "core/pipeline/speculator.h"

#include <gtest/gtest.h>

#include <vector>

namespace sealane {
namespace {

constexpr uint64_t kBytes = 64_MiB;

class Foretold final : public GuessSource {
 public:
  void observe(const Transfer&) override {}
  void forget(const Range&) override {}
  size_t predict(std::span<Guess> next) override {
    const size_t count = std::min(next.size(), guesses.size());
    for (size_t i = 0; i < count; ++i) next[i] = {guesses[i], 1.0F};
    return count;
  }
  std::string_view leader() const override { return "foretold"; }

  std::vector<Range> guesses;
};

Range buffer(uint64_t number) { return {number << 30, kBytes}; }

CopyCall copy_of(const Range& host) {
  CopyCall call;
  call.host = host;
  call.memory = HostKind::pinned;
  return call;
}

class SpeculatorTest : public testing::Test {
 protected:
  static PipelineOptions options() {
    PipelineOptions options;
    options.policy = *find_policy("speculate");
    options.costs.workers = 4;
    options.costs.guard_ns_per_byte = 0.05;  // longer than a copy takes
    return options;
  }
  void ask(CopyId copy, const Range& host) {
    ASSERT_TRUE(speculator.handle_asked(copy, copy_of(host), HostSide::in_place, now));
    speculator.handle_turn(copy, now);
  }
  // The driver seals all messages of a turn; it is across much later.
  void cross() {
    ASSERT_TRUE(speculator.next_turn(now).has_value());
    while (!speculator.all_sent()) {
      ASSERT_TRUE(speculator.next_message(now).has_value());
      ++position;
      speculator.handle_sent(now);
    }
    now += Duration(10'000'000);
    speculator.handle_turn_over({}, position, true, now);
  }
  std::vector<Range> sealed_from() {
    std::vector<Range> found;
    while (const auto action = speculator.poll(now)) {
      if (const auto* seal = std::get_if<Seal>(&*action)) found.push_back(seal->host);
    }
    return found;
  }

  Foretold source;
  Speculator speculator{options(), source};
  Instant now{};
  uint64_t position = 0;
};

// A link slower than the workers: when a copy is across, its last message was sealed long ago, and
// the workers rest. The next copy's turn has come too, and its guard takes a while to arm.
TEST_F(SpeculatorTest, NobodyBeginsToSealWhatTheThreadIsAboutToAskFor) {
  source.guesses = {buffer(2)};
  ask(1, buffer(1));
  cross();
  ask(2, buffer(2));
  for (const Range& range : sealed_from()) {
    EXPECT_FALSE(range.overlaps(buffer(2))) << "the thread would wait for a worker";
  }
  EXPECT_TRUE(speculator.next_turn(now).has_value());
}

TEST_F(SpeculatorTest, WithNothingToAskForTheWorkersSealAhead) {
  source.guesses = {buffer(2)};
  ask(1, buffer(1));
  cross();
  EXPECT_FALSE(speculator.next_turn(now).has_value());
  EXPECT_FALSE(sealed_from().empty());
}

}  // namespace
}  // namespace sealane
