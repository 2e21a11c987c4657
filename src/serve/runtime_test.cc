// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a carried copy wait for what is before it, does its stream wait for it, and what happens
// when something fails?

#include "serve/runtime.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>

#include "serve/errand.h"
#include "serve/runtime_for_tests.h"

namespace sealane::serve {
namespace {

TEST_F(RuntimeTest, ACopyGoesBehindWhatIsBeforeItAndTheStreamWaitsForIt) {
  std::memset(host_, 3, sizeof host_);
  driver_.obstruct(stream_);
  EXPECT_EQ(in(0, 100), Route::carried);
  const size_t before = driver_.copies();
  for (int i = 0; i < 50; ++i) std::this_thread::yield();
  EXPECT_FALSE(driver_.done(stream_));
  EXPECT_EQ(driver_.copies(), before) << "went before it was allowed to";
  host_[5] = 4;  // pinned: read when the copy goes
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[5], 4);
  EXPECT_EQ(driver_.device[99], 3);
}

// Two threads use one stream. What the one puts there it finds there, whatever the other does.
TEST_F(RuntimeTest, ACopyWaitsForWhatItsThreadPutThereThoughAnotherCopiedMeanwhile) {
  std::memset(host_, 3, sizeof host_);
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  {
    const Runtime::Entering entering(*runtime_, stream_);
    std::thread([&] { EXPECT_EQ(in(200, 100), Route::carried); }).join();
    driver_.obstruct(stream_);
  }
  EXPECT_EQ(in(400, 100), Route::carried);
  runtime_->drain({FakeDriver::kDeviceBase + 200, 100});
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  EXPECT_EQ(driver_.device[400], 0) << "went before what its thread had put into the stream";
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[400], 3);
}

// What a call has put there may run before the call is back, and wake another thread.
TEST_F(RuntimeTest, ACopyWaitsForWhatRunsInItsStreamThoughTheCallThatPutItThereIsNotBack) {
  std::memset(host_, 3, sizeof host_);
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  {
    const Runtime::Entering entering(*runtime_, stream_);
    driver_.obstruct(stream_);
    for (uint64_t at = 400; at < 1000; at += 200) {
      std::thread([&] { EXPECT_EQ(in(at, 100), Route::carried); }).join();
    }
  }
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  for (uint64_t at = 400; at < 1000; at += 200) EXPECT_EQ(driver_.device[at], 0) << at;
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[800], 3);
}

TEST_F(RuntimeTest, ACopyWaitsForWhatRunsInTheLegacyStreamThoughTheCallThatPutItThereIsNotBack) {
  std::memset(host_, 3, sizeof host_);
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  {
    const Runtime::Entering entering(*runtime_, FakeDriver::stream(kLegacyStream));
    driver_.obstruct(stream_);  // which waits for it
    std::thread([&] { EXPECT_EQ(in(400, 100), Route::carried); }).join();
  }
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  EXPECT_EQ(driver_.device[400], 0);
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[400], 3);
}

// Somebody who forges the next message would else be told of before the copy's turn: in the call
// that opened a thread for it.
TEST_F(RuntimeTest, AThreadThatIsOpenedBehindOthersSendsNoMessageOfItsOwn) {
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  const size_t before = driver_.copies();
  {
    const Runtime::Entering entering(*runtime_, stream_);
    driver_.obstruct(stream_);
  }
  EXPECT_EQ(out(0, 100), Route::carried);
  EXPECT_EQ(out(200, 100), Route::carried);
  EXPECT_EQ(driver_.contexts(), 3) << "one for each copy";
  EXPECT_EQ(driver_.copies(), before);
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.copies(), before + 2);
}

TEST_F(RuntimeTest, APageableSourceMayChangeAtOnce) {
  std::vector<uint8_t> pageable(3 << 10, 8);
  driver_.obstruct(stream_);
  EXPECT_EQ(copy(Direction::to_device, 0, pageable.data(), pageable.size()), Route::carried);
  std::fill(pageable.begin(), pageable.end(), uint8_t{1});
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[0], 8);
  EXPECT_EQ(driver_.device[(3 << 10) - 1], 8);
}

// Nobody told us of it, and the device may write it before the copy's turn.
TEST_F(RuntimeTest, MemoryThatTheDriverKnowsIsNotPageable) {
  std::vector<uint8_t> memory(4 * 4096, 8);
  const uint64_t page = (address(memory.data()) + 2 * 4096) / 4096 * 4096;
  auto* const inside = reinterpret_cast<uint8_t*>(page);
  driver_.know({page, 4096});
  EXPECT_EQ(copy(Direction::to_device, 0, inside, 100), Route::passed_memory);
  EXPECT_EQ(copy(Direction::to_device, 0, inside - 50, 100), Route::passed_memory) << "at its end";
  EXPECT_EQ(copy(Direction::to_device, 0, inside + 4096, 100), Route::carried);
  driver_.know({});
  runtime_->host_memory().add({page, 100}, {false, false, 0, FakeDriver::program()});
  EXPECT_EQ(copy(Direction::to_device, 0, inside - 50, 200), Route::passed_memory) << "within it";
  runtime_->host_memory().remove(page);
  driver_.await(stream_);
}

// The driver is asked where its answer decides, and nowhere else.
TEST_F(RuntimeTest, OnlySnapshotsOfUnknownMemoryAskTheDriverWhatItIs) {
  std::vector<uint8_t> pageable(100, 8);
  EXPECT_EQ(in(0, 100), Route::carried);
  EXPECT_EQ(out(200, 100), Route::carried);
  EXPECT_EQ(copy(Direction::to_host, 400, pageable.data(), 100), Route::passed_pageable);
  EXPECT_EQ(driver_.questions(), 0u);
  EXPECT_EQ(copy(Direction::to_device, 400, pageable.data(), 100), Route::carried);
  EXPECT_LE(driver_.questions(), 2u);
  driver_.await(stream_);
}

TEST_F(RuntimeTest, WhatCannotBeCarriedIsPassed) {
  std::vector<uint8_t> pageable(100);
  EXPECT_EQ(copy(Direction::to_host, 0, pageable.data(), 100), Route::passed_pageable);
  EXPECT_EQ(copy(Direction::to_device, driver_.device.size() - 10, host_, 100),
            Route::passed_memory);
  EXPECT_EQ(copy(Direction::to_device, 0, reinterpret_cast<uint8_t*>(uintptr_t{64}), 100),
            Route::passed_too_large)
      << "no such source";
  runtime_->set_capturing(stream_, true);
  EXPECT_EQ(in(0, 100), Route::passed_capture);
  runtime_->set_capturing(stream_, false);
  EXPECT_EQ(in(0, 100), Route::carried);
}

// A driver refuses a source that begins in memory it has pinned and ends elsewhere; what lies
// behind is not the program's to send by a length that is wrong.
TEST_F(RuntimeTest, WhatRunsOutOfPinnedMemoryIsTheDriversToRefuse) {
  std::vector<uint8_t> both(2048, 7);
  runtime_->host_memory().add({address(both.data()), 1024},
                              {false, false, 0, FakeDriver::program()});
  EXPECT_EQ(copy(Direction::to_device, 0, both.data() + 512, 1024), Route::passed_memory);
  EXPECT_EQ(copy(Direction::to_device, 0, both.data() + 512, 512), Route::carried);
  EXPECT_EQ(copy(Direction::to_device, 0, both.data() + 1024, 512), Route::carried) << "pageable";
  driver_.await(stream_);
  runtime_->host_memory().remove(address(both.data()));
  runtime_->drain({address(both.data()), both.size()});
}

TEST_F(RuntimeTest, MemoryThatTheDriverWouldNotFreeIsAsItWas) {
  const auto refuse = [&] {
    EXPECT_EQ(in(0, 100), Route::passed_memory) << "it may be gone any moment";
    return kNotSupported;
  };
  driver_.know({address(host_), sizeof host_});
  EXPECT_EQ(runtime_->free_host_memory(address(host_), refuse), kNotSupported);
  EXPECT_EQ(in(0, 100), Route::carried);
  EXPECT_EQ(out(200, 100), Route::carried);
  const auto wait = [&](const Range& range) { runtime_->drain(range); };
  EXPECT_EQ(runtime_->free_device_memory(FakeDriver::kDeviceBase, wait, refuse), kNotSupported);
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  EXPECT_EQ(runtime_->free_host_memory(address(host_), [] { return kSuccess; }), kSuccess);
  EXPECT_EQ(in(0, 100), Route::passed_memory);
}

TEST_F(RuntimeTest, WhatGoesWithAContextIsBackIfTheContextStays) {
  const auto left = runtime_->leave_context(FakeDriver::program());
  EXPECT_EQ(in(0, 100), Route::passed_memory);
  runtime_->stay_in_context(FakeDriver::program(), left);
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
}

TEST_F(RuntimeTest, AContextThatGoesTakesItsCapturesWithIt) {
  runtime_->set_capturing(stream_, true);
  EXPECT_EQ(in(0, 100), Route::passed_capture);
  runtime_->forget_context(FakeDriver::program());
  EXPECT_FALSE(runtime_->any_capturing());
  runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                {0, FakeDriver::program()});
  runtime_->host_memory().add({address(host_), sizeof host_},
                              {false, false, 0, FakeDriver::program()});
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
}

TEST_F(RuntimeTest, CopiesThatTouchTheSameBytesKeepTheirOrder) {
  for (int round = 0; round < 200; ++round) {
    std::memset(host_, round + 1, 64);
    std::vector<uint8_t> other(64, static_cast<uint8_t>(round + 101));
    ASSERT_EQ(in(0, 64), Route::carried);
    ASSERT_EQ(copy(Direction::to_device, 32, other.data(), 32), Route::carried);
    ASSERT_EQ(copy(Direction::to_host, 0, host_ + 1024, 64), Route::carried);
    driver_.await(stream_);
    ASSERT_EQ(host_[1024], static_cast<uint8_t>(round + 1));
    ASSERT_EQ(host_[1024 + 32], static_cast<uint8_t>(round + 101));
  }
}

TEST_F(RuntimeTest, WithoutMemoryOperationsTheGateIsAHostFunction) {
  driver_.memory_operations = false;
  std::memset(host_, 6, 100);
  driver_.obstruct(stream_);
  EXPECT_EQ(in(0, 100), Route::carried);
  EXPECT_FALSE(driver_.done(stream_));
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[99], 6);
}

TEST_F(RuntimeTest, AFailedCopyFailsItsContextAndOpensItsGate) {
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  EXPECT_FALSE(runtime_->any_failed());
  driver_.next_copy = 214;
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  EXPECT_TRUE(runtime_->any_failed());
  EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
  EXPECT_EQ(driver_.failed_contexts, std::vector{FakeDriver::program()})
      << "work behind it runs on";
  runtime_->forget_context(FakeDriver::program());
  EXPECT_FALSE(runtime_->any_failed());
}

// Whoever was let through the gate must not miss the error, nor find bytes that nobody verified.
TEST_F(RuntimeTest, AFailureIsKnownAndItsBytesAreGoneBeforeTheGateOpens) {
  EXPECT_EQ(out(0, 100), Route::carried);
  driver_.await(stream_);
  for (int round = 0; round < 200; ++round) {
    std::memset(host_, 5, 100);
    driver_.next_copy = 214;
    ASSERT_EQ(out(0, 100), Route::carried);
    driver_.await(stream_);
    ASSERT_EQ(runtime_->failure_of(FakeDriver::program()), 214) << round;
    ASSERT_EQ(host_[50], 0) << round;
    runtime_->drain(FakeDriver::program());
    driver_.next_copy = kSuccess;
    runtime_->forget_context(FakeDriver::program());
    runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                  {0, FakeDriver::program()});
    runtime_->host_memory().add({address(host_), sizeof host_},
                                {false, false, 0, FakeDriver::program()});
  }
}

TEST_F(RuntimeTest, AGateOpensThoughNoContextOfOursIsLeft) {
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  driver_.contexts_max = driver_.contexts();
  driver_.lanes_fail = true;
  driver_.next_copy = 214;
  EXPECT_EQ(in(0, 100), Route::carried);
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  while (!driver_.done(stream_) && SteadyClock().now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_TRUE(driver_.done(stream_)) << "the program would wait for ever";
  EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
}

// A copy is forged of one context of the program's, and the driver has no other one for ours. What
// waits behind it is of another context.
class ForgedBesideTest : public RuntimeTest {
 protected:
  static constexpr uint64_t kAt = 1000;
  static constexpr uint64_t kCopies = 3;
  static constexpr uint64_t kEach = 100;

  ForgedBesideTest() {
    driver_.put_into_another(other_);
    EXPECT_EQ(out(2000, kEach), Route::carried);
    EXPECT_EQ(in(0, kEach), Route::carried);
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    driver_.contexts_max = driver_.contexts();
    std::memset(host_, 7, sizeof host_);
    driver_.obstruct(other_);
    for (uint64_t i = 0; i < kCopies; ++i) {
      const uint64_t at = kAt + i * kEach;
      EXPECT_EQ(runtime_->copy({Direction::to_device, FakeDriver::kDeviceBase + at, host_ + at,
                                kEach, other_, ++id_}),
                Route::carried);
    }
    driver_.break_context(2, 214);
    EXPECT_EQ(in(200, kEach), Route::carried);
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
  }
  void go_on() {
    driver_.lift();
    driver_.await(other_);
    runtime_->drain(FakeDriver::another());
  }

  const StreamHandle other_ = FakeDriver::stream(8192);
};

TEST_F(ForgedBesideTest, WhatIsQueuedIsCarriedInAContextThatIsLeft) {
  go_on();
  EXPECT_EQ(runtime_->failure_of(FakeDriver::another()), kSuccess);
  for (uint64_t at = kAt; at < kAt + kCopies * kEach; ++at) ASSERT_EQ(driver_.device[at], 7) << at;
}

// Whose context it is has it replaced before the next copy of its own.
TEST_F(ForgedBesideTest, WhatIsForgedThereFailsNobodyElse) {
  driver_.break_context(1, 214);
  go_on();
  EXPECT_EQ(runtime_->failure_of(FakeDriver::another()), 214);
  driver_.contexts_max += 2;
  runtime_->forget_context(FakeDriver::program());
  runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                {0, FakeDriver::program()});
  runtime_->host_memory().add({address(host_), sizeof host_},
                              {false, false, 0, FakeDriver::program()});
  driver_.device[3000] = 9;
  EXPECT_EQ(out(3000, kEach), Route::carried);
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), kSuccess);
  EXPECT_EQ(host_[3000], 9);
}

// Its context failed while the driver had no other. When it has one, copies are carried again.
TEST_F(RuntimeTest, AThreadThatBrokeIsMendedWhenThereIsRoomAgain) {
  break_the_only_thread();
  ASSERT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
  ++driver_.contexts_max;
  runtime_->forget_context(FakeDriver::program());
  runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                {0, FakeDriver::program()});
  runtime_->host_memory().add({address(host_), sizeof host_},
                              {false, false, 0, FakeDriver::program()});
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  Route route = Route::passed;
  while (route != Route::carried && SteadyClock().now() < until) route = in(400, 100);
  EXPECT_EQ(route, Route::carried);
}

// Who asks for it while it looks for a context does not make it look for another one.
TEST_F(RuntimeTest, AThreadThatIsMendedIsMendedOnce) {
  const StreamHandle other = FakeDriver::stream(8192);
  driver_.put_into_another(other);
  const auto ask = [&] {
    return runtime_->copy(
        {Direction::to_device, FakeDriver::kDeviceBase + 1000, host_ + 1000, 64, other, ++id_});
  };
  break_the_only_thread();
  const uintptr_t made = driver_.contexts_made();
  driver_.hold_contexts(true);
  driver_.contexts_max += 2;
  runtime_->forget_context(reinterpret_cast<ContextHandle>(uintptr_t{99}));
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  const auto in_time = [&] { return SteadyClock().now() < until; };
  while (driver_.making() == 0 && in_time()) EXPECT_NE(ask(), Route::carried);
  EXPECT_NE(ask(), Route::carried);
  driver_.hold_contexts(false);
  Route route = Route::passed;
  while (route != Route::carried && in_time()) route = ask();
  EXPECT_EQ(route, Route::carried);
  driver_.await(other);
  runtime_->drain(FakeDriver::another());
  EXPECT_EQ(driver_.contexts_made(), made + 1);
}

// One of them finds a context again while all are given up: it goes, and nothing is put on it.
TEST_F(RuntimeTest, AThreadThatIsMendedWhileAllAreGivenUpGetsNothingMore) {
  const StreamHandle other = FakeDriver::stream(8192);
  driver_.put_into_another(other);
  const auto ask = [&](uint64_t at) {
    return runtime_->copy(
        {Direction::to_device, FakeDriver::kDeviceBase + at, host_ + at, 64, other, ++id_});
  };
  EXPECT_EQ(in(0, 100), Route::carried);
  EXPECT_EQ(out(0, 100), Route::carried);
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  driver_.obstruct(other);
  EXPECT_EQ(ask(1000), Route::carried);
  driver_.contexts_max = driver_.contexts();
  driver_.break_context(1, 214);
  EXPECT_EQ(in(200, 100), Route::carried);
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  ASSERT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
  std::thread gives([&] { runtime_->give_up_contexts(); });
  const StreamHandle third = FakeDriver::stream(12288);
  driver_.put_into_another(third);
  const auto leaving = [&] {  // nothing is carried any more, in the other direction either
    return runtime_->copy({Direction::to_host, FakeDriver::kDeviceBase, host_, 64, third, ++id_}) !=
           Route::carried;
  };
  const Instant until = SteadyClock().now() + std::chrono::minutes(5);
  while (!leaving() && SteadyClock().now() < until) driver_.await(third);
  ++driver_.contexts_max;  // the program has ended one meanwhile
  driver_.lift();
  gives.join();
  driver_.await(other);
  ask(2000);
  driver_.await(other);
  EXPECT_TRUE(driver_.done(other));
}

// A context that is being made for a copy, or for a thread that broke, can be given, too.
class GivenWhileMade : public RuntimeTest {
 protected:
  // True: there was something to give. Nothing if that took so long that nobody waits for it.
  std::optional<bool> give_beside_making() {
    while (driver_.making() == 0) std::this_thread::yield();
    bool given = false;
    const Instant begin = SteadyClock().now();
    std::thread gives([&] { given = runtime_->give_up_contexts(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // who does not wait has the time
    driver_.hold_contexts(false);
    gives.join();
    if (!given && SteadyClock().now() - begin > Errand::kPatience) return std::nullopt;
    return given;
  }
};

TEST_F(GivenWhileMade, AThreadThatIsBeingOpened) {
  driver_.hold_contexts(true);
  std::thread asks([&] { in(0, 100); });
  const auto given = give_beside_making();
  asks.join();
  driver_.await(stream_);
  if (!given) GTEST_SKIP() << "the machine is too busy to tell";
  EXPECT_TRUE(*given);
  EXPECT_EQ(driver_.contexts(), 0);
}

TEST_F(GivenWhileMade, AThreadThatIsBeingMended) {
  const StreamHandle other = FakeDriver::stream(8192);
  driver_.put_into_another(other);
  break_the_only_thread();
  driver_.hold_contexts(true);
  ++driver_.contexts_max;
  runtime_->forget_context(reinterpret_cast<ContextHandle>(uintptr_t{99}));
  EXPECT_NE(runtime_->copy({Direction::to_device, FakeDriver::kDeviceBase + 1000, host_ + 1000, 64,
                            other, ++id_}),
            Route::carried);
  const auto given = give_beside_making();
  if (!given) GTEST_SKIP() << "the machine is too busy to tell";
  EXPECT_TRUE(*given);
}

// What a copy sets when it is done must not be another stream's by then.
TEST_F(RuntimeTest, AStreamThatIsGoneKeepsItsGatesUntilItsCopiesAreDone) {
  driver_.obstruct(stream_);
  EXPECT_EQ(in(0, 100), Route::carried);
  EXPECT_EQ(in(300, 100), Route::carried);  // on the other copy thread
  runtime_->destroy_stream(stream_, [] { return true; });
  const StreamHandle other = FakeDriver::stream(8192);
  for (uint64_t at = 1000; at < 2000; at += 200) {
    EXPECT_EQ(runtime_->copy({Direction::to_device, FakeDriver::kDeviceBase + at, host_ + at, 100,
                              other, ++id_}),
              Route::carried);
    runtime_->drain({address(host_ + at), 100});
  }
  driver_.lift();
  runtime_->drain(FakeDriver::program());
  EXPECT_TRUE(driver_.done(other)) << "its words were set back";
}

// The driver gives a handle again before we hear that the one who had it is gone, and somebody
// copies there: that is another stream, whatever becomes known of the old one in the middle of it.
class HandleGivenAgain : public RuntimeTest {
 protected:
  // What is in a word by now would let another one through.
  void use_the_old_one() {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(in(0, 100), Route::carried);
      driver_.await(stream_);
      runtime_->drain(FakeDriver::program());
      const Runtime::Entering entering(*runtime_, stream_);
    }
  }
  // A copy wants a second thread then, and waits for its context.
  void begin_copy() {
    const StreamHandle busy = FakeDriver::stream(8192);
    driver_.put_into_another(busy);
    driver_.obstruct(busy);
    EXPECT_EQ(runtime_->copy({Direction::to_device, FakeDriver::kDeviceBase + 1000, host_ + 1000,
                              100, busy, ++id_}),
              Route::carried);
    driver_.hold_contexts(true);
    caller_ = std::thread([this] { EXPECT_EQ(in(2000, 100), Route::carried); });
    while (driver_.making() == 0) std::this_thread::yield();
  }
  void expect_that_it_waits_for_its_copy() {
    driver_.lift();
    runtime_->drain(FakeDriver::another());
    driver_.hold_copies_of(FakeDriver::kDeviceBase + 2000);
    driver_.hold_contexts(false);
    caller_.join();
    while (driver_.waiting() == 0) std::this_thread::yield();
    EXPECT_FALSE(driver_.done(stream_)) << "its copy is not there yet";
    driver_.let_go();
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    EXPECT_EQ(driver_.device[2000], 7);
  }

 private:
  std::thread caller_;
};

TEST_F(HandleGivenAgain, AStreamsIsAnotherStream) {
  host_[2000] = 7;
  use_the_old_one();
  runtime_->destroy_stream(stream_, [&] { return begin_copy(), true; });
  expect_that_it_waits_for_its_copy();
}

TEST_F(HandleGivenAgain, AContextsStreamsAreOthers) {
  host_[2000] = 7;
  use_the_old_one();
  const auto left = runtime_->leave_context(FakeDriver::program());
  runtime_->device_memory().add({FakeDriver::kDeviceBase, driver_.device.size()},
                                {0, FakeDriver::another()});
  runtime_->host_memory().add({address(host_), sizeof host_},
                              {false, false, 0, FakeDriver::another()});
  begin_copy();
  runtime_->forget_context(FakeDriver::program(), left);
  expect_that_it_waits_for_its_copy();
}

TEST_F(RuntimeTest, AStreamThatTheDriverKeepsIsAsItWas) {
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.obstruct(stream_);
  runtime_->set_capturing(stream_, true);
  runtime_->destroy_stream(stream_, [] { return false; });
  EXPECT_EQ(in(200, 100), Route::passed_capture);
  runtime_->set_capturing(stream_, false);
  EXPECT_EQ(in(200, 100), Route::carried);
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  EXPECT_FALSE(driver_.done(stream_));
  driver_.lift();
  driver_.await(stream_);
}

TEST_F(RuntimeTest, ContextsAreGivenBackAndTakenAgain) {
  EXPECT_EQ(in(0, 100), Route::carried);
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());  // its thread, too, is through with it
  EXPECT_GT(driver_.contexts(), 0);
  EXPECT_TRUE(runtime_->give_up_contexts());
  EXPECT_EQ(driver_.contexts(), 0);
  EXPECT_EQ(in(0, 100), Route::passed_aside);
  runtime_->forget_context(reinterpret_cast<ContextHandle>(uintptr_t{78}));
  EXPECT_EQ(out(0, 100), Route::carried);
  driver_.await(stream_);
}

// What holds a stream may be the very thread that asks for a context: it waited for ever.
TEST_F(RuntimeTest, GivingContextsBackDoesNotWaitForWhatTheCallerHolds) {
  driver_.obstruct(stream_);
  ASSERT_EQ(in(0, 64), Route::carried);
  const StreamHandle other = FakeDriver::stream(8192);
  ASSERT_EQ(runtime_->copy({Direction::to_device, FakeDriver::kDeviceBase + 1000, host_ + 1000, 64,
                            other, ++id_}),
            Route::carried);
  driver_.await(other);
  const int before = driver_.contexts();
  EXPECT_TRUE(runtime_->give_up_contexts());
  EXPECT_LT(driver_.contexts(), before);
  EXPECT_GT(driver_.contexts(), 0) << "a copy still waits for one";
  driver_.lift();
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(std::memcmp(driver_.device.data(), host_, 64), 0);
}

// What holds a stream of another context may be the very thread that ends this one.
TEST_F(RuntimeTest, DrainingAContextDoesNotWaitForOthers) {
  driver_.obstruct(stream_);
  ASSERT_EQ(in(0, 64), Route::carried);
  const size_t before = driver_.copies();
  runtime_->drain(reinterpret_cast<ContextHandle>(uintptr_t{78}));
  EXPECT_EQ(driver_.copies(), before) << "it is held still";
  driver_.lift();
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(driver_.copies(), before + 1);
}

TEST_F(RuntimeTest, DrainingWaitsForTheMemoryInQuestion) {
  EXPECT_EQ(in(0, 100), Route::carried);
  runtime_->drain({address(host_ + 50), 10});
  EXPECT_EQ(driver_.device[0], host_[0]);
}

}  // namespace
}  // namespace sealane::serve
