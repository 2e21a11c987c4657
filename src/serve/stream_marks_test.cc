// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/stream_marks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "serve/fake_driver_for_tests.h"

namespace sealane::serve {
namespace {

class EventPoolTest : public testing::Test {
 protected:
  // As a copy does: lent, looked at, given back.
  EventHandle use() { return pool_.take(FakeDriver::program())->event; }

  FakeDriver driver_;
  EventPool pool_{driver_};
};

TEST_F(EventPoolTest, LendsWhatCameBack) {
  const EventHandle first = use();
  EXPECT_EQ(use(), first);
  const auto held = pool_.take(FakeDriver::program());
  EXPECT_EQ(held->event, first);
  EXPECT_NE(use(), first);
}

// The driver may give the next context the same handle, and its events too: then two copies would
// wait for one event, and go too early or never.
TEST_F(EventPoolTest, AnEventThatComesBackAfterItsContextIsLentToNobody) {
  auto late = pool_.take(FakeDriver::program());
  const EventHandle gone = late->event;
  pool_.leave(FakeDriver::program());
  pool_.forget(FakeDriver::program());
  late.reset();
  EXPECT_NE(use(), gone);
}

TEST_F(EventPoolTest, WhileAContextLeavesItsEventsAreLentToNobody) {
  const EventHandle old = use();
  pool_.leave(FakeDriver::program());
  const EventHandle next = use();  // of another context with the same handle
  EXPECT_NE(next, old);
  pool_.forget(FakeDriver::program());
  EXPECT_EQ(use(), next);
}

TEST_F(EventPoolTest, AContextThatStaysKeepsItsEvents) {
  const EventHandle first = use();
  pool_.leave(FakeDriver::program());
  pool_.stay(FakeDriver::program());
  EXPECT_EQ(use(), first);
  pool_.leave(FakeDriver::program());
  const EventHandle second = use();
  pool_.stay(FakeDriver::program());
  const auto one = pool_.take(FakeDriver::program());
  const auto other = pool_.take(FakeDriver::program());
  EXPECT_EQ(std::min(one->event, other->event), std::min(first, second));
  EXPECT_EQ(std::max(one->event, other->event), std::max(first, second));
}

// Contexts are few, and of those that fail there may be any number.
TEST(GateWordsTest, AContextThatWasReplacedGoesWithItsLastWord) {
  FakeDriver driver;
  CopyContext first;
  CopyContext second;
  ASSERT_EQ(driver.make_context(0, first), kSuccess);
  GateWords words(driver, first);
  GateWord one;
  GateWord other;
  ASSERT_TRUE(words.take(one) && words.take(other));
  ASSERT_EQ(driver.make_context(0, second), kSuccess);
  words.replace_context(second);
  words.give(one);
  EXPECT_EQ(driver.contexts(), 2) << "a stream may look at its word";
  words.give(other);
  EXPECT_EQ(driver.contexts(), 1);

  GateWord next;
  ASSERT_TRUE(words.take(next));
  EXPECT_EQ(next.context, second.context);
  words.give(next);
  CopyContext third;
  ASSERT_EQ(driver.make_context(0, third), kSuccess);
  words.replace_context(third);
  EXPECT_EQ(driver.contexts(), 1) << "nobody has a word of the second";
  words.close();
  EXPECT_EQ(driver.contexts(), 0);
}

}  // namespace
}  // namespace sealane::serve
