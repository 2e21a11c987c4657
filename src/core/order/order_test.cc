// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/order/order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"

namespace sealane {
namespace {

// The order's answers as words, so that a test reads like a history.
std::vector<std::string> said(Order& order) {
  std::vector<std::string> lines;
  while (auto action = order.poll()) {
    if (const auto* submit = std::get_if<Submit>(&*action)) {
      lines.push_back(concat("submit ", submit->call));
    } else if (const auto* issue = std::get_if<Issue>(&*action)) {
      std::string line = "issue";
      for (uint32_t i = 0; i < issue->count; ++i) line += concat(" ", issue->copies[i]);
      lines.push_back(line);
    } else if (const auto* gate = std::get_if<Gate>(&*action)) {
      lines.push_back(concat("gate ", gate->copy));
    } else if (const auto* watch = std::get_if<Watch>(&*action)) {
      lines.push_back(concat("watch ", watch->stream, " to ", watch->count));
    } else {
      lines.push_back(concat("wake ", std::get<Wake>(*action).waiter));
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

OrderedCopy copy(CopyKey key, StreamKey stream, uint64_t device, uint64_t bytes = 4096) {
  return {.key = key, .stream = stream, .host = {key << 32, bytes}, .device = device};
}
OrderedCopy copy_back(CopyKey key, StreamKey stream, uint64_t device) {
  OrderedCopy made = copy(key, stream, device);
  made.direction = Direction::to_host;
  return made;
}

TEST(Order, CallsOfAnIdleStreamGoAtOnce) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_call(0, 11);
  EXPECT_EQ(said(order), (Lines{"submit 10", "submit 11"}));
}

TEST(Order, ACopyWaitsForTheKernelBeforeItAndTheKernelBehindItForTheGate) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_copy(copy(1, 0, 0));
  order.handle_call(0, 11);
  EXPECT_EQ(said(order), (Lines{"submit 10", "watch 0 to 1"}));
  order.handle_reached(0, 1);
  EXPECT_EQ(said(order), (Lines{"issue 1", "gate 1", "submit 11"}));
}

TEST(Order, NoGateIsQueuedBeforeItsCopyIsIssued) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_copy(copy(1, 0, 0));
  order.handle_call(1, 20);  // another stream, perhaps of the same hardware queue
  order.handle_copy(copy(2, 1, 0x10000));
  for (const std::string& line : said(order)) EXPECT_NE(line.substr(0, 4), "gate");
}

TEST(Order, NeighboursThatDoNotTouchGoTogether) {
  Order order({});
  order.handle_copy(copy(1, 0, 0));
  order.handle_copy(copy(2, 0, 0x10000));
  order.handle_copy(copy(3, 0, 0x100));  // overlaps the first
  EXPECT_EQ(said(order), (Lines{"issue 1", "gate 1", "issue 2", "gate 2"}));
  order.handle_landed(0, 1, Direction::to_device);
  EXPECT_EQ(said(order), (Lines{"issue 3", "gate 3"}));
}

TEST(Order, AWaitForARecordThatIsDeferredIsDeferredToo) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_copy(copy(1, 0, 0));
  order.handle_record(0, 5, 11);
  order.handle_wait(1, 5, 20);
  order.handle_call(1, 21);
  EXPECT_EQ(said(order), (Lines{"submit 10", "watch 0 to 1"}));
  order.handle_reached(0, 1);
  EXPECT_EQ(said(order), (Lines{"issue 1", "gate 1", "submit 11", "submit 20", "submit 21"}));
}

TEST(Order, AWaitForWhatWasNeverRecordedIsNoWait) {
  Order order({});
  order.handle_wait(1, 5, 20);
  EXPECT_EQ(said(order), (Lines{"submit 20"}));
}

TEST(Order, SynchronisingWaitsForTheGateOfACarriedCopy) {
  Order order({});
  order.handle_copy(copy(1, 0, 0));
  order.handle_sync_stream(0, 7);
  EXPECT_EQ(said(order), (Lines{"issue 1", "gate 1", "watch 0 to 1"}));
  order.handle_landed(0, 1, Direction::to_device);
  EXPECT_TRUE(said(order).empty());
  order.handle_reached(0, 1);
  EXPECT_EQ(said(order), (Lines{"wake 7"}));
}

TEST(Order, SynchronisingWaitsUntilWhatCameBackIsOpened) {
  Order order({});
  order.handle_copy(copy_back(1, 0, 0));
  order.handle_sync_stream(0, 7);
  said(order);
  order.handle_landed(0, 1, Direction::to_host);
  order.handle_reached(0, 1);
  EXPECT_TRUE(said(order).empty());
  EXPECT_FALSE(order.done(0));
  order.handle_opened(1);
  EXPECT_EQ(said(order), (Lines{"wake 7"}));
  EXPECT_TRUE(order.done(0));
}

// The event of one stream covers copies to the host of another that it waited for.
TEST(Order, SynchronisingOnAnEventCoversWhatItsStreamWaitedFor) {
  Order order({});
  order.handle_copy(copy_back(1, 0, 0));
  order.handle_record(0, 3, 10);
  order.handle_wait(1, 3, 20);
  order.handle_record(1, 4, 21);
  order.handle_sync_event(4, 7);
  said(order);
  order.handle_landed(0, 1, Direction::to_host);
  order.handle_reached(0, 2);
  order.handle_reached(1, 2);
  EXPECT_TRUE(said(order).empty());
  order.handle_opened(1);
  EXPECT_EQ(said(order), (Lines{"wake 7"}));
}

TEST(Order, SynchronisingDoesNotWaitForLaterCalls) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_copy(copy(1, 0, 0));
  order.handle_sync_stream(0, 7);
  order.handle_call(0, 11);
  said(order);
  order.handle_reached(0, 1);
  said(order);
  order.handle_landed(0, 1, Direction::to_device);
  order.handle_reached(0, 2);  // the gate, not the call behind it
  EXPECT_EQ(said(order), (Lines{"wake 7"}));
}

TEST(Order, SmallCopiesThatWaitTogetherTravelTogether) {
  Order order({.coalesce = true});
  for (CopyKey key = 1; key <= 4; ++key) {
    OrderedCopy small = copy(key, 0, key * 0x10000, 64);
    small.small = true;
    order.handle_copy(small);
    if (key == 1) {
      EXPECT_EQ(said(order), (Lines{"gate 1", "issue 1"}));
    }
  }
  EXPECT_EQ(said(order), (Lines{"gate 2", "gate 3", "gate 4"}));
  order.handle_batch_landed();
  EXPECT_EQ(said(order), (Lines{"issue 2 3 4"}));
  EXPECT_EQ(order.stats().coalesced, 2U);
}

TEST(Order, AFailureWakesEverybody) {
  Order order({});
  order.handle_call(0, 10);
  order.handle_sync_stream(0, 1);
  order.handle_sync_all(2);
  said(order);
  order.handle_failed();
  const Lines lines = said(order);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()),
            (std::set<std::string>{"wake 1", "wake 2"}));
}

// A device with one hardware queue for all streams: an item that cannot start holds up all behind
// it. Whatever the program does, everything is done in the end, and every waiter wakes.
RC_GTEST_PROP(Order, NothingDeadlocksOnASingleHardwareQueue, ()) {
  SeededRandom random(*rc::gen::arbitrary<uint64_t>());
  Order order({.coalesce = random.chance(0.5)});
  struct Item {
    StreamKey stream;
    uint64_t gate = 0;  // a copy, or 0
  };
  std::vector<Item> queue;  // what the hardware queue still has, in order
  std::map<StreamKey, uint64_t> done;
  std::map<CopyKey, OrderedCopy> issued;
  std::map<CopyKey, OrderedCopy> known;
  std::set<CopyKey> landed;
  std::set<WaiterKey> asleep;
  CopyKey next = 1;

  const auto obey = [&] {
    while (auto action = order.poll()) {
      if (const auto* submit = std::get_if<Submit>(&*action)) queue.push_back({submit->stream, 0});
      if (const auto* gate = std::get_if<Gate>(&*action)) {
        RC_ASSERT(known.count(gate->copy) == 1U);
        queue.push_back({gate->stream, gate->copy});
      }
      if (const auto* issue = std::get_if<Issue>(&*action)) {
        for (uint32_t i = 0; i < issue->count; ++i)
          issued[issue->copies[i]] = known[issue->copies[i]];
      }
      if (const auto* wake = std::get_if<Wake>(&*action)) asleep.erase(wake->waiter);
    }
  };
  const auto work = [&] {
    if (!issued.empty()) {
      bool small = false;
      for (const auto& [key, each] : issued) {
        landed.insert(key);
        small = small || each.small;
        order.handle_landed(each.stream, key, each.direction);
        if (each.direction == Direction::to_host) order.handle_opened(key);
      }
      issued.clear();
      if (small) order.handle_batch_landed();
    }
    while (!queue.empty() && (queue.front().gate == 0 || landed.count(queue.front().gate) == 1)) {
      const StreamKey stream = queue.front().stream;
      order.handle_reached(stream, ++done[stream]);
      queue.erase(queue.begin());
    }
  };

  for (int i = 0; i < 200; ++i) {
    const auto stream = static_cast<StreamKey>(random.below(4));
    const auto event = static_cast<EventKey>(random.below(3));
    if (order.full(stream)) continue;
    switch (random.below(7)) {
      case 0:
      case 1: {
        OrderedCopy made = copy(next, stream, random.below(8) * 2048);
        made.small = random.chance(0.5);
        if (random.chance(0.2)) made = copy_back(next, stream, random.below(8) * 2048);
        known[next++] = made;
        order.handle_copy(made);
        break;
      }
      case 2:
        order.handle_call(stream, 1);
        break;
      case 3:
        order.handle_record(stream, event, 1);
        break;
      case 4:
        order.handle_wait(stream, event, 1);
        break;
      case 5: {
        const auto waiter = static_cast<WaiterKey>(random.below(3));
        if (asleep.insert(waiter).second) order.handle_sync_stream(stream, waiter);
        break;
      }
      case 6:
        work();
        break;
    }
    if (random.chance(0.7)) obey();
  }
  for (int i = 0; i < 2000; ++i) {
    obey();
    work();
  }
  RC_ASSERT(asleep.empty());
  RC_ASSERT(queue.empty());
  for (StreamKey stream = 0; stream < 4; ++stream) RC_ASSERT(order.done(stream));
}

}  // namespace
}  // namespace sealane
