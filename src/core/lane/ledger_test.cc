// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is every position used at most once, in order, within the limits of its key?

#include "core/lane/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace sealane {
namespace {

static_assert(!std::is_copy_constructible_v<Position> && !std::is_copy_assignable_v<Position>);
static_assert(!std::is_constructible_v<Position, uint64_t, Epoch, uint64_t>,
              "only the ledger mints positions");

TEST(Ledger, MintsInOrder) {
  Ledger ledger;
  Position first = *ledger.reserve_next(1);
  Position second = *ledger.reserve_next(1);
  EXPECT_EQ(first.number(), 0u);
  EXPECT_EQ(second.number(), 1u);
  EXPECT_TRUE(ledger.publish(std::move(first)).ok());
  EXPECT_TRUE(ledger.publish(std::move(second)).ok());
  EXPECT_EQ(ledger.head(), 2u);
}

TEST(Ledger, RefusesToPublishOutOfOrder) {
  Ledger ledger;
  Position first = *ledger.reserve_next(1);
  Position second = *ledger.reserve_next(1);
  const Status status = ledger.publish(std::move(second));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::crypto);
  EXPECT_TRUE(ledger.publish(std::move(first)).ok());
}

TEST(Ledger, PositionOfAVoidedSlotIsMintedAgain) {
  Ledger ledger;
  Position kept = *ledger.reserve_next(1);
  ledger.give_back(*ledger.reserve_next(1));
  EXPECT_EQ(ledger.state(1), PositionState::free);
  EXPECT_EQ(ledger.reserve_next(1)->number(), 1u);
  EXPECT_EQ(kept.number(), 0u);
}

TEST(Ledger, PositionThatDiesUnusedIsNeverMintedAgain) {
  Ledger ledger;
  { const auto lost = ledger.reserve(0, 1); }
  EXPECT_EQ(ledger.state(0), PositionState::reserved);
  EXPECT_FALSE(ledger.reserve(0, 1).ok());
}

TEST(Ledger, FollowingBurnsWhatOthersPassed) {
  Ledger ledger;
  Position passed = *ledger.reserve(3, 1);
  Position ahead = *ledger.reserve(9, 1);
  EXPECT_TRUE(ledger.follow(5).ok());
  EXPECT_EQ(ledger.head(), 5u);
  EXPECT_EQ(ledger.reserved_count(), 1u);
  EXPECT_FALSE(ledger.publish(std::move(passed)).ok());
  EXPECT_TRUE(ledger.follow(9).ok());
  EXPECT_TRUE(ledger.publish(std::move(ahead)).ok());
  EXPECT_FALSE(ledger.follow(9).ok()) << "a counter that goes back is an attack or a bug";
}

TEST(Ledger, RotationMakesHeldPositionsWorthless) {
  Ledger ledger;
  Position old = *ledger.reserve_next(1);
  Position also_old = *ledger.reserve_next(1);
  ledger.rotate();
  EXPECT_EQ(ledger.epoch().number, 1u);
  EXPECT_EQ(ledger.reserved_count(), 0u);
  EXPECT_FALSE(ledger.publish(std::move(old)).ok());
  Position fresh = *ledger.reserve_next(1);
  ledger.give_back(std::move(also_old));
  EXPECT_EQ(ledger.state(0), PositionState::reserved) << "an old position freed a new one";
  EXPECT_TRUE(ledger.publish(std::move(fresh)).ok());
}

TEST(Ledger, RefusesTheMessageThatWouldPassTheLimit) {
  Ledger ledger(KeyLimits{.messages = 3, .blocks = 100});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ledger.publish(*ledger.reserve_next(1)).ok());
  EXPECT_EQ(ledger.messages_left(), 0u);
  const auto refused = ledger.reserve_next(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::crypto);
  EXPECT_NE(refused.error().message.find("re-key"), std::string::npos);
  ledger.rotate();
  EXPECT_TRUE(ledger.reserve_next(1).ok());
}

TEST(Ledger, RefusesTheBlockThatWouldPassTheLimit) {
  Ledger ledger(KeyLimits{.messages = 100, .blocks = 10});
  Position six = *ledger.reserve_next(6);
  EXPECT_FALSE(ledger.reserve_next(5).ok()) << "reserved blocks count before they are published";
  Position four = *ledger.reserve_next(4);
  ledger.give_back(std::move(four));
  EXPECT_TRUE(ledger.publish(std::move(six)).ok());
  EXPECT_EQ(ledger.blocks_left(), 4u);
  EXPECT_FALSE(ledger.reserve_next(5).ok());
  EXPECT_TRUE(ledger.reserve_next(4).ok());
}

TEST(Ledger, RealLimitsAreTheSpecifications) {
  EXPECT_EQ(KeyLimits{}.messages, 4'294'967'296u);
  EXPECT_EQ(KeyLimits{}.blocks * kBlockBytes / 1'000'000'000, 388u);  // GB: where NVIDIA rotates
  EXPECT_EQ(blocks_of(0, 0), 1u);
  EXPECT_EQ(blocks_of(17, 48), 2u + 3u + 1u);
}

TEST(Ledger, WindowBoundsHowFarAheadPositionsAreReserved) {
  Ledger ledger;
  EXPECT_TRUE(ledger.reserve(Ledger::kWindow - 1, 1).ok());
  EXPECT_FALSE(ledger.reserve(Ledger::kWindow, 1).ok());
}

// Any history of reserve, publish, give back, follow and rotate against a model that remembers
// every (epoch, number) ever published: none twice, none skipped except by follow().
RC_GTEST_PROP(LedgerProperty, NoPositionIsEverPublishedTwice, ()) {
  const KeyLimits limits{.messages = 60, .blocks = 150};
  Ledger ledger(limits);
  std::vector<Position> held;
  std::set<std::pair<uint32_t, uint64_t>> published;
  const auto take = [&] {
    const auto at = held.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(held));
    Position position = std::move(*at);
    held.erase(at);
    return position;
  };
  const int steps = *rc::gen::inRange(0, 300);
  for (int i = 0; i < steps; ++i) {
    const int what = *rc::gen::inRange(0, 100);
    if (what < 45) {
      auto position = *rc::gen::arbitrary<bool>()
                          ? ledger.reserve_next(*rc::gen::inRange(1, 5))
                          : ledger.reserve(ledger.head() + *rc::gen::inRange(0, 6), 2);
      if (position) held.push_back(*std::move(position));
    } else if (what < 75 && !held.empty()) {
      Position position = take();
      const auto name = std::pair(position.epoch().number, position.number());
      const uint64_t left_before = ledger.blocks_left();
      if (ledger.publish(std::move(position))) {
        RC_ASSERT(published.insert(name).second);
        RC_ASSERT(name.second < limits.messages);
        RC_ASSERT(ledger.blocks_left() == left_before);
      }
    } else if (what < 90 && !held.empty()) {
      ledger.give_back(take());
    } else if (what < 97) {
      const uint64_t before = ledger.head();
      const uint64_t to = before + *rc::gen::inRange(0, 3);
      RC_ASSERT(ledger.follow(to).ok());
      for (uint64_t n = before; n < to; ++n) published.insert({ledger.epoch().number, n});
    } else {
      ledger.rotate();
    }
    for (uint64_t n = 0; n < ledger.head(); ++n) {
      RC_ASSERT(published.contains({ledger.epoch().number, n}));
    }
  }
}

}  // namespace
}  // namespace sealane
