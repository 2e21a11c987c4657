// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do batches arrive whole or not at all, and do small copies that travel together end up where they
// would have ended up alone?

#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "serve/runtime_for_tests.h"

namespace sealane::serve {
namespace {

class TogetherTest : public RuntimeTest {
 protected:
  CopyAsked asked(Direction direction, uint64_t at, uint8_t* host, uint64_t bytes) {
    return {direction, FakeDriver::kDeviceBase + at, host, bytes, stream_, ++id_};
  }
  // Lanes try their way with a copy when they open.
  void open_lanes() {
    driver_.obstruct(stream_);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(in(0, 8), Route::carried);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(out(0, 8), Route::carried);
    driver_.lift();
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    moves_before_ = driver_.moves();  // one of them may have crossed early
    driver_.hold();
    driver_.obstruct(stream_);
    const Runtime::Entering entering(*runtime_, stream_);  // as any work of the program's does
  }
  size_t moves() { return driver_.moves() - moves_before_; }
  // Of two lanes, each of which may have looked when only the first copies were there.
  static constexpr size_t kCrossingsMax = 4;
  size_t crossings_until_done() {
    const size_t before = driver_.copies();
    driver_.lift();
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
    return driver_.copies() - before;
  }

 private:
  size_t moves_before_ = 0;
};

TEST_F(TogetherTest, ABatchIsCarriedAsAWhole) {
  std::vector<CopyAsked> batch;
  for (size_t i = 0; i < 100; ++i) {
    host_[i * 40] = static_cast<uint8_t>(i + 1);
    batch.push_back(asked(Direction::to_device, 1000 + i * 64, host_ + i * 40, 40));
  }
  driver_.obstruct(stream_);
  EXPECT_EQ(runtime_->copy_together(batch), Route::carried);
  EXPECT_FALSE(driver_.done(stream_));
  EXPECT_EQ(driver_.device[1000], 0);
  driver_.lift();
  driver_.await(stream_);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(driver_.device[1000 + i * 64], i + 1);
}

TEST_F(TogetherTest, OrNotAtAll) {
  std::vector<uint8_t> pageable(64);
  std::memset(host_, 1, sizeof host_);
  std::vector<CopyAsked> batch = {asked(Direction::to_device, 0, host_, 64),
                                  asked(Direction::to_host, 64, pageable.data(), 64)};
  EXPECT_EQ(runtime_->copy_together(batch), Route::passed_pageable);
  batch[1] = asked(Direction::to_device, driver_.device.size(), host_, 64);
  EXPECT_EQ(runtime_->copy_together(batch), Route::passed_memory);
  batch[1] = asked(Direction::to_host, 64, host_ + 64, 64);
  batch[1].read_now = true;
  EXPECT_EQ(runtime_->copy_together(batch), Route::passed);
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(driver_.device[0], 0);
}

TEST_F(TogetherTest, ASourceReadNowMayChangeAtOnce) {
  std::memset(host_, 5, 128);
  std::vector<CopyAsked> batch = {asked(Direction::to_device, 0, host_, 64),
                                  asked(Direction::to_device, 128, host_ + 64, 64)};
  batch[0].read_now = true;
  driver_.obstruct(stream_);
  EXPECT_EQ(runtime_->copy_together(batch), Route::carried);
  std::memset(host_, 6, 128);
  driver_.lift();
  driver_.await(stream_);
  EXPECT_EQ(driver_.device[0], 5);
  EXPECT_EQ(driver_.device[128], 6) << "read in stream order";
}

TEST_F(TogetherTest, CopiesThatContinueEachOtherAreOneCrossing) {
  open_lanes();
  for (size_t i = 0; i < 20; ++i) {
    uint8_t* const from = host_ + (19 - i) * 50;  // not end to end in the host
    std::memset(from, static_cast<int>(i + 1), 50);
    ASSERT_EQ(copy(Direction::to_device, i * 50, from, 50), Route::carried);
  }
  EXPECT_LE(crossings_until_done(), kCrossingsMax);
  EXPECT_EQ(moves(), 0u);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(driver_.device[i], i / 50 + 1);
}

TEST_F(TogetherTest, SoAreThoseThatDoNotWhereThatPays) {
  open_lanes();
  for (size_t i = 0; i < 20; ++i) {
    host_[i] = static_cast<uint8_t>(i + 1);
    ASSERT_EQ(copy(Direction::to_device, i * 100, host_ + i, 1), Route::carried);
  }
  EXPECT_LE(crossings_until_done(), kCrossingsMax);
  EXPECT_GE(moves(), 16u);
  for (size_t i = 0; i < 20; ++i) ASSERT_EQ(driver_.device[i * 100], i + 1);
}

TEST_F(TogetherTest, AndOnTheWayBack) {
  open_lanes();
  for (size_t i = 0; i < 2000; ++i) driver_.device[i] = static_cast<uint8_t>(i / 100 + 1);
  for (size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(copy(Direction::to_host, i * 100, host_ + (19 - i) * 100, 100), Route::carried);
  }
  EXPECT_LE(crossings_until_done(), kCrossingsMax);
  for (size_t i = 0; i < 2000; ++i) ASSERT_EQ(host_[i], 20 - i / 100);
}

TEST_F(TogetherTest, AFailedCrossingFailsItsContextAndOpensTheGates) {
  open_lanes();
  for (size_t i = 0; i < 10; ++i) ASSERT_EQ(in(i * 10, 10), Route::carried);
  driver_.next_copy = 214;
  driver_.lift();
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), 214);
}

// Those that would have travelled with it travel without it. What is behind it in the stream goes
// with the context that it fails, so nothing is.
TEST_F(TogetherTest, ASourceThatIsGoneFailsItsOwnCopyOnly) {
  open_lanes();
  void* const gone =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  runtime_->host_memory().add({address(gone), 4096}, {false, true, 0, FakeDriver::program()});
  std::memset(host_, 7, 100);
  // Where one lane has something to do, those that continue each other wait for the other one.
  ASSERT_EQ(in(3000, 10), Route::carried);
  for (size_t i = 0; i < 5; ++i) ASSERT_EQ(in(i * 10, 10), Route::carried);
  for (size_t i = 5; i < 10; ++i) {
    ASSERT_EQ(copy(Direction::to_device, i * 10, static_cast<uint8_t*>(gone), 10), Route::carried);
  }
  munmap(gone, 4096);
  driver_.lift();
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  for (size_t i = 8; i < 50; ++i) EXPECT_EQ(driver_.device[i], 7) << i;
  for (size_t i = 50; i < 100; ++i) EXPECT_EQ(driver_.device[i], 0) << i;
  EXPECT_EQ(runtime_->failure_of(FakeDriver::program()), kIllegalAddress);
}

// A copy may cross early behind them if none of them writes what it reads, not only the last.
TEST_F(TogetherTest, NothingIsReadBeforeAnyOfThemHasWrittenIt) {
  std::memset(host_, 7, 1000);
  driver_.hold_copies_of(FakeDriver::kDeviceBase);
  driver_.obstruct(
      stream_);  // else the second one may cross alone, before the others are asked for
  for (uint64_t at = 0; at < 400; at += 100) ASSERT_EQ(in(at, 100), Route::carried);
  driver_.lift();
  while (driver_.waiting() == 0) std::this_thread::yield();
  driver_.hold_copies_of(FakeDriver::kDeviceBase + 100);
  while (driver_.copies_but_probes() == 0 || driver_.waiting() == 0) std::this_thread::yield();
  ASSERT_EQ(copy(Direction::to_host, 200, host_ + 2000, 100), Route::carried);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // who would go early has the time
  driver_.let_go();
  driver_.await(stream_);
  runtime_->drain(FakeDriver::program());
  EXPECT_EQ(host_[2050], 7);
}

// Random copies of two streams that share no memory, against the same ones done at once.
TEST_F(TogetherTest, RandomCopiesEndUpWhereTheyShould) {
  const bool right = rc::check([this] {
    constexpr uint64_t kArea = 1024;  // of each stream, on the device and in the host
    std::vector<uint8_t> device(driver_.device.begin(), driver_.device.begin() + 2 * kArea);
    std::vector<uint8_t> host(host_, host_ + 2 * kArea);
    driver_.hold();
    const int steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      const size_t area = *rc::gen::inRange<size_t>(0, 2);
      const StreamHandle stream = FakeDriver::stream(4096 + area);
      const uint64_t bytes = *rc::gen::inRange<uint64_t>(1, 100);
      const uint64_t at = area * kArea + *rc::gen::inRange<uint64_t>(0, kArea - bytes);
      const uint64_t there = area * kArea + *rc::gen::inRange<uint64_t>(0, kArea - bytes);
      if (*rc::gen::inRange(0, 8) == 0) {
        driver_.obstruct(stream);
        const Runtime::Entering entering(*runtime_, stream);
      }
      CopyAsked one{Direction::to_host, FakeDriver::kDeviceBase + at, host_ + there, bytes, stream};
      std::vector<uint8_t> source(bytes, static_cast<uint8_t>(*rc::gen::inRange(0, 256)));
      if (*rc::gen::arbitrary<bool>()) {
        one.direction = Direction::to_device;
        one.host = source.data();
        std::copy(source.begin(), source.end(), device.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        std::copy_n(&device[at], bytes, &host[there]);
      }
      RC_ASSERT(runtime_->copy(one) == Route::carried);
    }
    driver_.lift();
    for (size_t area = 0; area < 2; ++area) driver_.await(FakeDriver::stream(4096 + area));
    runtime_->drain(FakeDriver::program());
    RC_ASSERT(std::equal(device.begin(), device.end(), driver_.device.begin()));
    RC_ASSERT(std::equal(host.begin(), host.end(), host_));
  });
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace sealane::serve
