// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The pipeline's decisions one by one, with a source of guesses that says what the test tells it.

#include "core/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace sealane {
namespace {

class Foretold final : public GuessSource {
 public:
  void observe(const Transfer& transfer) override {
    ++observed;
    if (transfer.direction == Direction::to_host || next.empty()) return;
    if (next.front() == transfer.host) next.pop_front();
  }
  void forget(const Range&) override { observed_when_forgotten = observed; }
  size_t predict(std::span<Guess> out) override {
    const size_t count = std::min(out.size(), next.size());
    for (size_t i = 0; i < count; ++i) out[i] = {next[i], 1};
    return count;
  }
  std::string_view leader() const override { return "foretold"; }

  std::deque<Range> next;
  int observed = 0;
  int observed_when_forgotten = 0;
};

class PipelineTest : public ::testing::Test {
 protected:
  static Range buffer(uint64_t index, uint64_t bytes = 1_MiB) {
    return {0x1000'0000 + index * 64_MiB, bytes};
  }

  PipelineTest() { options.costs.workers = 31; }  // enough to seal ahead while something is sent

  void start(const char* policy = "sealane") {
    options.policy = *find_policy(policy);
    pipeline.emplace(options, source);
  }

  FlightId request(const Range& host, bool ready = true) {
    const FlightId flight = pipeline->handle_copy({.host = host}, now);
    if (ready) pipeline->handle_ready(flight, now);
    poll();
    return flight;
  }

  void poll() {
    while (auto action = pipeline->poll(now)) {
      if (const auto* seal = std::get_if<Seal>(&*action)) seals.push_back(*seal);
      if (const auto* out = std::get_if<Publish>(&*action)) published.push_back(*out);
      if (const auto* pad = std::get_if<Pad>(&*action)) pads.push_back(*pad);
      if (std::holds_alternative<Void>(*action)) ++voids;
    }
  }

  // Workers finish what they have and what they get, until nothing is left to seal.
  void seal_all() {
    while (!seals.empty()) {
      const SlotId slot = seals.front().slot;
      seals.pop_front();
      pipeline->handle_sealed(slot);
      poll();
    }
  }
  void land_all() {
    while (pipeline->lane().under_way) {
      const UnderWay done = *pipeline->lane().under_way;
      if (done.flight != kNone) {
        const uint64_t bytes = pipeline->host_of(done.flight).bytes;
        const bool last = done.host.end() == pipeline->host_of(done.flight).end();
        if (last && bytes > 0) finished.push_back(done.flight);
      }
      pipeline->handle_published(done.position, now);
      poll();
    }
  }
  // A first copy of something else makes the pipeline look ahead.
  void look_ahead(std::initializer_list<Range> next) {
    source.next.assign(next);
    request(buffer(100, 256_KiB));
    seal_all();
    land_all();
    seal_all();
    published.clear();
  }

  // One transfer that was foretold and not written: from now on more than one is sealed ahead.
  void earn_trust() {
    look_ahead({buffer(50, 4_MiB)});
    request(buffer(50, 4_MiB));
    seal_all();
    land_all();
    published.clear();
  }

  // All that were voided so far were for this reason.
  void expect_voided(VoidReason why, uint64_t count) const {
    const Pipeline::Stats& stats = pipeline->stats();
    EXPECT_EQ(stats.voided, count);
    EXPECT_EQ(stats.voided_for[static_cast<size_t>(why)], count) << to_string(why);
  }

  Foretold source;
  PipelineOptions options;
  std::optional<Pipeline> pipeline;
  Instant now{Duration(1'000'000'000)};
  std::deque<Seal> seals;
  std::vector<Publish> published;
  std::vector<Pad> pads;
  std::vector<FlightId> finished;
  int voids = 0;
};

// To learn takes longer than to claim, and whoever asks for a copy waits only for that. But what is
// freed is not learnt from afterwards: it would be guessed again.
TEST_F(PipelineTest, ARequestDoesNotWaitForWhatIsLearntFromIt) {
  start();
  for (uint64_t i = 0; i < 3; ++i) pipeline->handle_copy({.host = buffer(i)}, now);
  EXPECT_EQ(source.observed, 0);
  pipeline->handle_freed(buffer(1));
  EXPECT_EQ(source.observed_when_forgotten, 3);
  request(buffer(3));
  EXPECT_EQ(source.observed, 4);
  for (uint64_t i = 0; i < 200; ++i) pipeline->handle_copy({.host = buffer(i)}, now);
  poll();
  EXPECT_EQ(source.observed, 204);
}

TEST_F(PipelineTest, WhatWasForetoldIsPublishedFromItsSlot) {
  start();
  look_ahead({buffer(1, 2_MiB)});
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::page);
  request(buffer(1, 2_MiB));
  EXPECT_EQ(pipeline->following(), 1U);
  land_all();
  ASSERT_EQ(published.size(), 2U);
  EXPECT_NE(published[0].slot, kNone);
  EXPECT_NE(published[1].slot, kNone);
  EXPECT_EQ(pipeline->stats().hits, 1U);
  EXPECT_EQ(pipeline->stats().messages_ready, 2U);
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::none);
}

TEST_F(PipelineTest, AWriteVoidsOnlyWhatItTouchedAndItsPositionIsSealedAgain) {
  start();
  look_ahead({buffer(1, 3_MiB)});
  pipeline->handle_written({buffer(1).address + 1_MiB + 5, 10});
  poll();
  EXPECT_EQ(voids, 1);
  expect_voided(VoidReason::stale, 1);
  request(buffer(1, 3_MiB));
  seal_all();
  land_all();
  ASSERT_EQ(published.size(), 3U);
  EXPECT_NE(published[0].slot, kNone);
  EXPECT_EQ(published[1].position, published[0].position + 1);
  EXPECT_EQ(pipeline->stats().hits, 0U);
  EXPECT_EQ(pipeline->stats().messages_ready, 2U);
  EXPECT_EQ(finished.size(), 2U);
}

TEST_F(PipelineTest, AWriteWhileAWorkerSealsSpoilsTheRecord) {
  start();
  source.next = {buffer(1)};
  request(buffer(100, 256_KiB));
  land_all();
  ASSERT_EQ(seals.size(), 1U);
  pipeline->handle_written(buffer(1));
  const FlightId flight = request(buffer(1));
  seal_all();
  land_all();
  EXPECT_EQ(voids, 1);
  expect_voided(VoidReason::stale, 1);
  EXPECT_EQ(finished.back(), flight);
}

TEST_F(PipelineTest, AGuessThatChangesItsMindGivesUpWhatItHadSealed) {
  start();
  look_ahead({buffer(1)});
  EXPECT_EQ(pipeline->stats().guesses, 1U);
  source.next = {buffer(2)};
  request(buffer(101, 256_KiB));
  seal_all();
  land_all();
  EXPECT_EQ(voids, 1);
  EXPECT_EQ(pipeline->stats().relinquished, 1U);
  EXPECT_EQ(pipeline->stats().guesses, 2U);
}

TEST_F(PipelineTest, ACopyToTheHostVoidsWhatWasSealedFromItsRange) {
  start();
  look_ahead({buffer(1)});
  pipeline->handle_copy({.direction = Direction::to_host, .host = buffer(1)}, now);
  expect_voided(VoidReason::stale, 1);
}

TEST_F(PipelineTest, OneTransferIsSealedAheadUntilOneHasHeld) {
  start();
  look_ahead({buffer(1), buffer(2), buffer(3)});
  EXPECT_EQ(pipeline->planned().size(), 1U);
  request(buffer(1));
  land_all();
  EXPECT_EQ(pipeline->planned().size(), 2U);
  pipeline->handle_written(buffer(2));
  source.next = {buffer(4), buffer(5), buffer(6)};
  request(buffer(2));
  seal_all();
  EXPECT_EQ(pipeline->planned().size(), 1U);
}

TEST_F(PipelineTest, ASkippedGuessIsHeldForThenPadded) {
  start();
  earn_trust();
  look_ahead({buffer(1), buffer(2), buffer(3), buffer(4), buffer(5)});
  const uint64_t held = pipeline->stats().held;
  request(buffer(2));
  EXPECT_TRUE(published.empty());
  EXPECT_EQ(pipeline->stats().held, held + 1);
  ASSERT_TRUE(pipeline->deadline().has_value());
  now = *pipeline->deadline();
  poll();
  land_all();
  ASSERT_EQ(pads.size(), 1U);
  EXPECT_EQ(pads[0].count, 1U);
  ASSERT_EQ(published.size(), 1U);
  EXPECT_NE(published[0].slot, kNone);
  EXPECT_EQ(published[0].position, pads[0].position + 1);
}

TEST_F(PipelineTest, AHeldCopyGoesWhenTheOneBeforeItComes) {
  start();
  earn_trust();
  look_ahead({buffer(1), buffer(2)});
  request(buffer(2));
  request(buffer(1));
  land_all();
  ASSERT_EQ(published.size(), 2U);
  EXPECT_TRUE(pads.empty());
  EXPECT_EQ(pipeline->stats().hits, 3U);
}

TEST_F(PipelineTest, AnUnpredictedCopyIsSealedByTheLaneAndAllWorkersAtOnce) {
  start();
  source.next.clear();
  request(buffer(7, 6_MiB));
  ASSERT_EQ(published.size(), 1U);
  EXPECT_EQ(published[0].slot, kNone);
  EXPECT_TRUE(seals.empty());
  while (finished.empty()) {
    seal_all();
    land_all();
  }
  for (size_t i = 0; i < published.size(); ++i) EXPECT_EQ(published[i].message, i);
}

TEST_F(PipelineTest, ARequestThatWaitsForItsStreamDoesNotHoldUpAnother) {
  start();
  source.next.clear();
  const FlightId first = request(buffer(1), false);
  seal_all();
  const FlightId second = request(buffer(2), true);
  for (int i = 0; i < 10 && finished.empty(); ++i) {
    if (pipeline->deadline()) now = *pipeline->deadline();
    poll();
    seal_all();
    land_all();
  }
  ASSERT_EQ(finished, std::vector<FlightId>{second});
  pipeline->handle_ready(first, now);
  poll();
  seal_all();
  land_all();
  EXPECT_EQ(finished.back(), first);
}

TEST_F(PipelineTest, RotationVoidsAllSlotsAndTheLaneGoesOn) {
  start();
  look_ahead({buffer(1), buffer(2)});
  const FlightId flight = request(buffer(1), false);
  pipeline->handle_rotated();
  pipeline->handle_ready(flight, now);
  poll();
  ASSERT_FALSE(published.empty());
  EXPECT_EQ(published[0].position, 0U);
  EXPECT_EQ(published[0].slot, kNone);
  land_all();
  EXPECT_EQ(finished.back(), flight);
}

TEST_F(PipelineTest, SlotsOfAKeyThatIsGoneAreVoided) {
  start();
  look_ahead({buffer(1, 2_MiB)});
  pipeline->handle_rotated();
  expect_voided(VoidReason::rotated, 2);
}

TEST_F(PipelineTest, WhatTheDriverSendsPassesOverSlots) {
  start();
  look_ahead({buffer(1)});
  pipeline->handle_consumed(pipeline->lane().head() + 1);
  poll();
  EXPECT_EQ(voids, 1);
  expect_voided(VoidReason::passed, 1);
  EXPECT_EQ(pipeline->stats().relinquished, 1U);
  pipeline->handle_consumed(0);
  EXPECT_TRUE(pipeline->failed());  // a counter that goes back is an attack or a bug
}

TEST_F(PipelineTest, MessagesOfAnotherSizeArePlannedAnewAndRequestsKeepTheirs) {
  start();
  earn_trust();
  const FlightId waiting = request(buffer(8, 2_MiB), false);
  look_ahead({buffer(1, 1_MiB)});
  const int voided = voids;
  pipeline->handle_message_bytes(256_KiB);
  poll();
  EXPECT_GT(voids, voided) << "its positions are not what the driver will use";
  seal_all();
  EXPECT_EQ(pipeline->message_bytes_of(waiting), 1_MiB);
  pipeline->handle_ready(waiting, now);
  poll();
  seal_all();
  land_all();
  EXPECT_EQ(std::ranges::count(finished, waiting), 1);
  seal_all();  // what is planned behind it
  published.clear();

  const uint64_t ready = pipeline->stats().messages_ready;
  const FlightId flight = request(buffer(1, 1_MiB));
  seal_all();
  land_all();
  EXPECT_EQ(pipeline->message_bytes_of(flight), 256_KiB);
  EXPECT_EQ(published.size(), 4U);
  EXPECT_EQ(pipeline->stats().messages_ready, ready + 4);
  EXPECT_EQ(finished.back(), flight);
}

TEST_F(PipelineTest, GuessesStayWithinTheirShareOfTheBudget) {
  options.slot_bytes_max = 8_MiB;
  start();
  look_ahead({buffer(1, 4_MiB), buffer(2, 4_MiB), buffer(3, 4_MiB)});
  EXPECT_LE(pipeline->slots().bytes(), 7_MiB);
  source.next.clear();
  request(buffer(9, 16_MiB));
  for (int i = 0; i < 100 && finished.size() < 2; ++i) {
    if (pipeline->deadline()) now = *pipeline->deadline();
    poll();
    seal_all();
    land_all();
  }
  EXPECT_EQ(finished.size(), 2U);
  EXPECT_LE(pipeline->slots().bytes_peak(), 8_MiB);
}

TEST_F(PipelineTest, WhatNoWorkerCouldSealTheLaneDoes) {
  start();
  source.next = {buffer(1, 2_MiB)};
  request(buffer(100, 256_KiB));
  land_all();
  ASSERT_FALSE(seals.empty());
  const size_t refused = seals.size();
  while (!seals.empty()) {
    pipeline->handle_unsealed(seals.front().slot);
    seals.pop_front();
  }
  poll();
  expect_voided(VoidReason::budget, refused);
  published.clear();
  const FlightId flight = request(buffer(1, 2_MiB));
  EXPECT_EQ(pipeline->stats().hits, 0U) << "it was not there";
  seal_all();
  land_all();
  EXPECT_EQ(published.front().slot, kNone);
  EXPECT_EQ(finished.back(), flight);
}

TEST_F(PipelineTest, WhatRoomIsLeftIsAllThatIsPlanned) {
  start();
  earn_trust();
  pipeline->handle_room(2_MiB);
  look_ahead({buffer(1), buffer(2), buffer(3), buffer(4)});
  EXPECT_LE(pipeline->slots().bytes(), 2_MiB);
  pipeline->handle_room(UINT64_MAX);
  EXPECT_EQ(pipeline->slots().bytes_max(), options.slot_bytes_max);
  request(buffer(1));
  land_all();
  seal_all();
  EXPECT_GT(pipeline->slots().bytes(), 2_MiB);
}

TEST_F(PipelineTest, ABlockOnItsWayFromTheDeviceIsSealedAheadOnceItIsThere) {
  start();
  source.next = {buffer(1)};
  const FlightId back =
      pipeline->handle_copy({.direction = Direction::to_host, .host = buffer(1)}, now);
  poll();
  EXPECT_TRUE(seals.empty());
  pipeline->handle_arrived(back);
  poll();
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_EQ(seals[0].host, buffer(1));
  EXPECT_EQ(seals[0].flight, kNone);
}

TEST_F(PipelineTest, FreedMemoryIsNotReadAgain) {
  start();
  source.next = {buffer(1)};
  request(buffer(100, 256_KiB));
  land_all();
  ASSERT_EQ(seals.size(), 1U);
  source.next.clear();
  pipeline->handle_freed(buffer(1));
  seal_all();
  EXPECT_EQ(voids, 1);
  expect_voided(VoidReason::freed, 1);
}

TEST_F(PipelineTest, RangesThatKeepChangingAreLeftAlone) {
  start();
  for (int round = 0; round < 6; ++round) {
    look_ahead({buffer(1)});
    pipeline->handle_written(buffer(1));
    request(buffer(1));
    seal_all();
    land_all();
  }
  EXPECT_LT(pipeline->stats().sealed_ahead, 5U);
}

TEST_F(PipelineTest, NoSlotsWhereTheyDoNotPay) {
  options.costs.seal_ns_per_byte = 0.05;
  options.costs.copy_ns_per_byte = 0.1;
  options.costs.workers = 1;
  start();
  look_ahead({buffer(1), buffer(2)});
  EXPECT_EQ(pipeline->stats().sealed_ahead, 0U);
  EXPECT_EQ(pipeline->slots().bytes_peak(), 0U);
}

TEST_F(PipelineTest, ForcedToSealAheadItDoesNotAsk) {
  options.costs.seal_ns_per_byte = 0.05;
  options.costs.copy_ns_per_byte = 0.1;
  start("speculate");
  look_ahead({buffer(1), buffer(2)});
  EXPECT_GT(pipeline->stats().sealed_ahead, 0U);
}

// Workers that share each message: few of them have no time to spare while the lane sends.
TEST_F(PipelineTest, FewSharedWorkersSealAheadOnlyWhenTheLaneRests) {
  options.costs.workers = 1;
  start();
  source.next = {buffer(1)};
  request(buffer(100, 2_MiB));
  land_all();
  ASSERT_EQ(published.size(), 2U);
  EXPECT_EQ(published[0].slot, kNone);  // all seal it together when its turn comes
  EXPECT_TRUE(seals.empty());           // the next copy may come at once
  const auto rest = pipeline->deadline();
  ASSERT_TRUE(rest);
  now = *rest;
  poll();
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_EQ(seals[0].host, buffer(1));
  EXPECT_FALSE(pipeline->deadline());
}

TEST_F(PipelineTest, ManySharedWorkersSealAheadBetweenMessages) {
  options.costs.workers = 31;
  start();
  source.next = {buffer(1)};
  request(buffer(100, 2_MiB));
  ASSERT_EQ(published.size(), 1U);
  EXPECT_EQ(published[0].slot, kNone);
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_EQ(seals[0].host, buffer(1));
}

// The next copy would wait for the guard to be armed.
TEST_F(PipelineTest, AGuardThatTakesLongerToArmThanACopyToSendWaitsForARest) {
  options.costs.workers = 31;
  options.costs.guard_ns_per_byte = 1;
  start();
  source.next = {buffer(1)};
  request(buffer(100, 2_MiB));
  EXPECT_TRUE(seals.empty());
  land_all();
  poll();
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_EQ(seals[0].host, buffer(1));
}

TEST_F(PipelineTest, ARequestIsSealedEarlyOnlyIfItsStreamKeepsItWaiting) {
  options.costs.workers = 31;
  start();
  const FlightId at_once = request(buffer(1), false);
  EXPECT_TRUE(seals.empty());
  pipeline->handle_ready(at_once, now);
  poll();
  ASSERT_EQ(published.size(), 1U);
  EXPECT_EQ(published[0].slot, kNone);  // all seal it together
  land_all();
  request(buffer(2), false);
  EXPECT_TRUE(seals.empty());
  now += options.costs.toll;
  poll();
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_EQ(seals[0].host, buffer(2));
}

TEST_F(PipelineTest, ALaneKnowsWhenItWaitsForAWorker) {
  options.costs.workers = 31;
  start();
  source.next = {buffer(1)};
  request(buffer(100, 256_KiB));
  land_all();
  ASSERT_EQ(seals.size(), 1U);
  EXPECT_FALSE(pipeline->waits_for_worker());
  request(buffer(1));
  EXPECT_TRUE(pipeline->waits_for_worker());
  seal_all();
  EXPECT_FALSE(pipeline->waits_for_worker());
}

TEST_F(PipelineTest, WhatCannotBeProtectedIsGivenUpIfItsDigestCostsMore) {
  options.costs.digest_ns_per_byte = 1;
  start();
  look_ahead({buffer(1)});
  ASSERT_EQ(pipeline->guard_of(buffer(1)), GuardKind::page);
  pipeline->handle_guarded(buffer(1), GuardKind::digest);
  poll();
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::none);
  EXPECT_EQ(voids, 1);
  expect_voided(VoidReason::costly, 1);

  const uint64_t sealed = pipeline->stats().sealed_ahead;
  look_ahead({buffer(1)});
  EXPECT_EQ(pipeline->stats().sealed_ahead, sealed) << "it is not tried again";
  look_ahead({buffer(2)});
  EXPECT_EQ(pipeline->stats().sealed_ahead, sealed + 1) << "other memory is";
}

TEST_F(PipelineTest, WhatCannotBeProtectedStaysIfItsDigestIsWorthIt) {
  options.costs.digest_ns_per_byte = 0.0001;
  start();
  look_ahead({buffer(1)});
  pipeline->handle_guarded(buffer(1), GuardKind::digest);
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::digest);
  request(buffer(1));
  EXPECT_EQ(pipeline->stats().hits, 1U);
}

TEST_F(PipelineTest, FreedMemoryIsNewMemoryToItsGuards) {
  options.costs.digest_ns_per_byte = 1;
  start();
  pipeline->handle_guarded(buffer(1), GuardKind::digest);
  pipeline->handle_freed(buffer(1));
  look_ahead({buffer(1)});
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::page);
}

TEST_F(PipelineTest, ThePaperDoesNotAskWhatAGuardCosts) {
  options.costs.digest_ns_per_byte = 1;
  start("pipellm");
  look_ahead({buffer(1)});
  pipeline->handle_guarded(buffer(1), GuardKind::digest);
  EXPECT_EQ(pipeline->guard_of(buffer(1)), GuardKind::digest);
}

TEST(Costs, ASlotIsOnePassMoreWhereCoresAreShared) {
  Costs costs{.seal_ns_per_byte = 0.147, .copy_ns_per_byte = 0.0935, .workers = 1};
  EXPECT_TRUE(costs.slots_pay());
  costs.shared_core = 1;
  EXPECT_FALSE(costs.slots_pay());
  costs.seal_ns_per_byte = 0.4;  // an engine so slow that two passes are cheaper for the lane
  EXPECT_TRUE(costs.slots_pay());
}

TEST(Costs, ASlotHasToSaveEnoughToBeWorthWaitingFor) {
  Costs costs{.seal_ns_per_byte = 0.0966, .copy_ns_per_byte = 0.0935, .workers = 1};
  EXPECT_FALSE(costs.slots_pay());
  costs.seal_ns_per_byte = 0.11;
  EXPECT_TRUE(costs.slots_pay());
}

// Workers and the lane share them, one message each.
TEST(Costs, DigestsOfACopyAreComparedAtTheSameTime) {
  const Costs costs{.digest_ns_per_byte = 0.1, .workers = 3};
  const Duration one = costs.check(true, 1_MiB, 1);
  EXPECT_EQ(one, Costs::bytes_time(0.1, 1_MiB));
  EXPECT_EQ(costs.check(true, 4_MiB, 4), one);
  EXPECT_EQ(costs.check(true, 5_MiB, 5), Costs::bytes_time(0.1, 2_MiB));
  EXPECT_EQ(costs.check(false, 4_MiB, 4), Costs::bytes_time(costs.guard_check_ns_per_byte, 4_MiB));
}

TEST(Leeway, LearnsHowManyPositionsOthersTake) {
  Leeway leeway;
  const Duration pad{20'000};
  const Duration lost{600'000};
  EXPECT_EQ(leeway.best(pad, lost), 0U);
  for (int i = 0; i < 50; ++i) leeway.observe(3);
  EXPECT_EQ(leeway.best(pad, lost), 3U);
  for (int i = 0; i < 200; ++i) leeway.observe(0);
  EXPECT_EQ(leeway.best(pad, lost), 0U);
}

TEST(Account, ClosesWhenGuessesCostMoreThanTheyBring) {
  Account account;
  const Instant start{Duration(1)};
  EXPECT_TRUE(account.open(start));
  account.spend(Duration(1'000'000));
  EXPECT_FALSE(account.open(start + Duration(10'000'000)));
  EXPECT_TRUE(account.open(start + Duration(300'000'000)));  // a small share of the time
  account.spend(Duration(100'000'000));
  account.earn(Duration(200'000'000));
  EXPECT_TRUE(account.open(start + Duration(300'000'000)));
}

}  // namespace
}  // namespace sealane
