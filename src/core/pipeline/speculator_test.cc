// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what seals ahead for a copy thread keep out of that thread's way, and answer the right
// message?

#include "core/pipeline/speculator.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/lane/iv_law.h"

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
  explicit SpeculatorTest(std::string_view policy = "speculate")
      : speculator(options(policy), source) {}

  static PipelineOptions options(std::string_view policy) {
    PipelineOptions options;
    options.policy = *find_policy(policy);
    options.costs.workers = 4;
    options.costs.guard_ns_per_byte = 0.05;  // longer than a copy takes
    return options;
  }
  void ask(CopyId copy, const Range& host, bool alone = false) {
    CopyCall call = copy_of(host);
    call.alone = alone;
    ASSERT_TRUE(speculator.handle_asked(copy, call, HostSide::in_place, now));
    speculator.handle_turn(copy, now);
  }
  static constexpr uint64_t kKey = 7;
  Verdict seal(const Range& piece) {
    const Iv iv = law.iv(position++);
    speculator.handle_seen(kKey, iv);
    return speculator.answer({kKey, iv, piece}, now);
  }
  void give(const Verdict& verdict, uint64_t bytes, uint64_t back = 1) {
    const bool exposed = verdict.kind == Verdict::Kind::from_slot;
    speculator.handle_answered(law.iv(position - back), exposed, bytes, now);
  }
  // The driver seals all messages of a turn; it is across much later.
  void cross(const Range& host) {
    const auto turn = speculator.next_turn(now);
    ASSERT_TRUE(turn.has_value());
    for (uint64_t at = 0; at < turn->bytes; at += kMessageBytes) {
      const uint64_t bytes = std::min(kMessageBytes, turn->bytes - at);
      const Verdict verdict = seal({host.address + turn->offset + at, bytes});
      ASSERT_NE(verdict.kind, Verdict::Kind::wait);
      give(verdict, bytes);
    }
    now += Duration(10'000'000);
    ASSERT_TRUE(speculator.end_crossing(true, now));
  }
  // Workers seal all they are asked to.
  std::vector<Range> sealed_from() {
    std::vector<Range> found;
    while (const auto action = speculator.poll(now)) {
      if (const auto* drop = std::get_if<DropSlot>(&*action)) dropped.push_back(*drop);
      const auto* seal = std::get_if<SealSlot>(&*action);
      if (seal == nullptr) continue;
      found.push_back(seal->host);
      digests = digests || seal->digest;
      speculator.handle_sealed(seal->slot, Speculator::Sealed::whole, now);
    }
    return found;
  }
  // The second copy is foreseen, sealed, asked for and has its turn.
  void foresee(const Range& second) {
    source.guesses = {second};
    ask(1, buffer(1));
    cross(buffer(1));
    EXPECT_FALSE(speculator.next_turn(now).has_value());
    EXPECT_FALSE(sealed_from().empty());
    ask(2, second);
    ASSERT_TRUE(speculator.next_turn(now).has_value());
  }

  Foretold source;
  Speculator speculator;
  Instant now{};
  IvLaw law;
  uint64_t position = 0;
  std::vector<DropSlot> dropped;
  bool digests = false;
};

// A link slower than the workers: when a copy is across, its last message was sealed long ago, and
// the workers rest. The next copy's turn has come too, and its guard takes a while to arm.
TEST_F(SpeculatorTest, NobodyBeginsToSealWhatTheThreadIsAboutToAskFor) {
  source.guesses = {buffer(2)};
  ask(1, buffer(1));
  cross(buffer(1));
  ask(2, buffer(2));
  for (const Range& range : sealed_from()) {
    EXPECT_FALSE(range.overlaps(buffer(2))) << "the thread would wait for a worker";
  }
  EXPECT_TRUE(speculator.next_turn(now).has_value());
}

TEST_F(SpeculatorTest, WithNothingToAskForTheWorkersSealAhead) {
  source.guesses = {buffer(2)};
  ask(1, buffer(1));
  cross(buffer(1));
  EXPECT_FALSE(speculator.next_turn(now).has_value());
  EXPECT_FALSE(sealed_from().empty());
}

TEST_F(SpeculatorTest, WhatWasForeseenIsAnsweredFromItsSlot) {
  foresee(buffer(2));
  const Verdict verdict = seal({buffer(2).address, kMessageBytes});
  EXPECT_EQ(verdict.kind, Verdict::Kind::from_slot);
  EXPECT_TRUE(verdict.foreseen);
}

// A driver that seals from memory of its own, and two messages at once that hold the same bytes:
// the second must not take the slot away from under the first.
TEST_F(SpeculatorTest, WhileOneMessageIsAnsweredItsSlotStays) {
  foresee(buffer(2));
  const Range somewhere{0x42, kMessageBytes};
  const Iv first = law.iv(position++);
  speculator.handle_seen(kKey, first);
  ASSERT_EQ(speculator.answer({kKey, first, somewhere}, now).kind, Verdict::Kind::compare);
  ASSERT_EQ(speculator.answer({kKey, first, somewhere, true}, now).kind, Verdict::Kind::from_slot);
  const Iv second = law.iv(position++);
  speculator.handle_seen(kKey, second);
  EXPECT_EQ(speculator.answer({kKey, second, somewhere}, now).kind, Verdict::Kind::drivers);
  EXPECT_EQ(speculator.answer({kKey, second, somewhere, true}, now).kind, Verdict::Kind::drivers);
  sealed_from();
  EXPECT_TRUE(dropped.empty());
  speculator.handle_answered(second, false, kMessageBytes, now);  // nobody asked
  sealed_from();
  EXPECT_TRUE(dropped.empty());
  speculator.handle_answered(first, true, kMessageBytes, now);
  sealed_from();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_TRUE(dropped[0].exposed);
}

// The driver's call is over, and somebody still copies from the slot: it stays, whatever follows.
TEST_F(SpeculatorTest, ASlotThatIsLentOutlivesItsCrossing) {
  foresee(buffer(2));
  const Verdict verdict = seal({buffer(2).address, kMessageBytes});
  ASSERT_EQ(verdict.kind, Verdict::Kind::from_slot);
  EXPECT_TRUE(speculator.end_crossing(true, now));
  EXPECT_TRUE(speculator.stopped());
  sealed_from();
  for (const DropSlot& drop : dropped) EXPECT_NE(drop.slot, verdict.slot);
  dropped.clear();
  give(verdict, kMessageBytes);
  sealed_from();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].slot, verdict.slot);
}

TEST_F(SpeculatorTest, StoppedItDropsEverySlotAndAnswersNothing) {
  foresee(buffer(2));
  speculator.stop();
  sealed_from();
  EXPECT_GT(dropped.size(), 1u);
  EXPECT_EQ(seal({buffer(2).address, kMessageBytes}).kind, Verdict::Kind::drivers);
  EXPECT_TRUE(speculator.end_crossing(true, now));
  EXPECT_FALSE(speculator.next_turn(now).has_value());
}

TEST_F(SpeculatorTest, WhatAWorkerReadsIsNotToBeFreed) {
  source.guesses = {buffer(2)};
  ask(1, buffer(1));
  cross(buffer(1));
  std::vector<SlotId> slots;
  while (const auto action = speculator.poll(now)) {
    if (const auto* seal = std::get_if<SealSlot>(&*action)) slots.push_back(seal->slot);
  }
  ASSERT_FALSE(slots.empty());
  speculator.handle_freed(buffer(2));
  EXPECT_TRUE(speculator.reads(buffer(2)));
  EXPECT_FALSE(speculator.reads(buffer(1)));
  for (const SlotId slot : slots) {
    speculator.handle_sealed(slot, Speculator::Sealed::whole, now);
  }
  EXPECT_FALSE(speculator.reads(buffer(2)));
  sealed_from();
  EXPECT_EQ(dropped.size(), slots.size());
}

// What came to the host and did not verify ends it for good.
TEST_F(SpeculatorTest, ACopyThatFailedIsFinal) {
  foresee(buffer(2));
  CopyCall back = copy_of(buffer(3));
  back.direction = Direction::to_host;
  ASSERT_TRUE(speculator.handle_asked(3, back, HostSide::in_place, now));
  speculator.handle_over(3, false, now);
  EXPECT_TRUE(speculator.stopped());
  sealed_from();
  EXPECT_FALSE(dropped.empty());
}

// On a machine where sealing ahead does not pay by throughput.
class SpeculatorOfAFastMachine : public SpeculatorTest {
 protected:
  SpeculatorOfAFastMachine() : SpeculatorTest("sealane") {}

  // So many copies, one after the other, each foreseen. How many messages were sealed ahead?
  size_t sealed_ahead(CopyId copies, bool alone) {
    size_t sealed = 0;
    for (CopyId copy = 1; copy <= copies; ++copy) {
      source.guesses = {buffer(copy + 1)};
      ask(copy, buffer(copy), alone);
      cross(buffer(copy));
      EXPECT_FALSE(speculator.next_turn(now).has_value());
      sealed += sealed_from().size();
    }
    return sealed;
  }
};

TEST_F(SpeculatorOfAFastMachine, SealsAheadForWhoWaitsForCopies) {
  EXPECT_EQ(sealed_ahead(WaitedCopies::kSeenMin - 1, true), 0U) << "nothing is known yet";
  EXPECT_GT(sealed_ahead(4, true), 0U);
}

TEST_F(SpeculatorOfAFastMachine, SealsNothingAheadForWhoAsksForManyAtATime) {
  EXPECT_EQ(sealed_ahead(40, false), 0U);
}

// What the bytes of a message have to be compared with, once the driver has hidden where it seals
// from.
TEST_F(SpeculatorTest, OfADriverThatHidesPlacesDigestsAreKept) {
  foresee(buffer(2));
  EXPECT_FALSE(digests);
  const Verdict verdict = seal({0x42, kMessageBytes});
  ASSERT_EQ(verdict.kind, Verdict::Kind::compare);
  EXPECT_EQ(speculator.answer({kKey, law.iv(position - 1), {0x42, kMessageBytes}, false}, now).kind,
            Verdict::Kind::drivers);
  ASSERT_TRUE(speculator.end_crossing(true, now));
  source.guesses = {buffer(3)};
  now += Duration(10'000'000);
  sealed_from();
  EXPECT_TRUE(digests);
}

}  // namespace
}  // namespace sealane
