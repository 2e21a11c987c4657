// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// While one copy of a stream crosses, does the next one cross too, and land behind it?

#include "serve/early_crossing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/copy/copy_table.h"
#include "serve/runtime_for_tests.h"

namespace sealane::serve {
namespace {

// Not small, or they would travel together, and not bulk, or they might be sealed ahead.
constexpr uint64_t kBytes = 100'000;
constexpr uint64_t kSecond = 512 << 10;

class EarlyCrossingTest : public RuntimeTest {
 protected:
  EarlyCrossingTest() {
    runtime_->host_memory().add({address(first_.data()), first_.size()},
                                {false, false, 0, FakeDriver::program()});
    runtime_->host_memory().add({address(second_.data()), second_.size()},
                                {false, false, 0, FakeDriver::program()});
  }
  ~EarlyCrossingTest() override {
    driver_.let_go();
    driver_.lift();
    runtime_->drain(FakeDriver::program());
  }

  // Two copies of one stream. The first one stays in the driver.
  void ask(Direction direction) {
    driver_.hold_copies_of(FakeDriver::kDeviceBase);
    ASSERT_EQ(copy(direction, 0, first_.data(), kBytes), Route::carried);
    while (driver_.waiting() == 0) std::this_thread::yield();
    ASSERT_EQ(copy(direction, kSecond, second_.data(), kBytes), Route::carried);
  }
  void await_the_second() {
    while (driver_.copies_but_probes() == 0) std::this_thread::yield();
  }
  void await_all() {
    driver_.let_go();
    driver_.await(stream_);
    runtime_->drain(FakeDriver::program());
  }
  bool arrived(bool on_device, uint64_t at, const std::vector<uint8_t>& host, uint8_t value) {
    const uint8_t* const from = on_device ? &driver_.device[at] : host.data();
    return std::all_of(from, from + kBytes, [&](uint8_t byte) { return byte == value; });
  }

  std::vector<uint8_t> first_ = std::vector<uint8_t>(kBytes, 1);
  std::vector<uint8_t> second_ = std::vector<uint8_t>(kBytes, 2);
};

TEST_F(EarlyCrossingTest, ToTheDevice) {
  ask(Direction::to_device);
  await_the_second();
  EXPECT_TRUE(arrived(true, kSecond, {}, 0)) << "nobody can see it";
  EXPECT_FALSE(driver_.done(stream_));
  await_all();
  EXPECT_EQ(driver_.moves(), 1u);
  EXPECT_TRUE(arrived(true, 0, {}, 1));
  EXPECT_TRUE(arrived(true, kSecond, {}, 2));
}

TEST_F(EarlyCrossingTest, ToTheHost) {
  std::fill_n(&driver_.device[0], kBytes, uint8_t{3});
  std::fill_n(&driver_.device[kSecond], kBytes, uint8_t{4});
  ask(Direction::to_host);
  await_the_second();
  EXPECT_TRUE(arrived(false, 0, second_, 2)) << "nobody can see it";
  EXPECT_FALSE(driver_.done(stream_));
  await_all();
  EXPECT_TRUE(arrived(false, 0, first_, 3));
  EXPECT_TRUE(arrived(false, 0, second_, 4));
}

TEST_F(EarlyCrossingTest, WithoutMemoryForItTheCopyWaitsForItsTurn) {
  driver_.has_memory = false;
  ask(Direction::to_device);
  await_all();
  EXPECT_EQ(driver_.moves(), 0u);
  EXPECT_TRUE(arrived(true, 0, {}, 1));
  EXPECT_TRUE(arrived(true, kSecond, {}, 2));
}

// What had landed or must not is not left in memory of ours.
TEST_F(EarlyCrossingTest, ItsMemoryInTheHostIsWiped) {
  WorkerPool pool(0);
  ProgramMemory memory(pool, 1 << 20);
  EarlyCrossing early(driver_, memory, Direction::to_host);
  ASSERT_TRUE(early.ready({}));
  const auto clean = [&] {
    return std::all_of(early.host(), early.host() + kBytes, [](uint8_t byte) { return byte == 0; });
  };
  std::fill_n(early.host(), kBytes, uint8_t{9});
  EXPECT_EQ(early.land({}, 0, second_.data(), kBytes), kSuccess);
  EXPECT_TRUE(arrived(false, 0, second_, 9));
  EXPECT_TRUE(clean());
  std::fill_n(early.host(), kBytes, uint8_t{9});
  early.discard(kBytes);
  EXPECT_TRUE(clean());
  driver_.free_host(early.host());
}

}  // namespace
}  // namespace sealane::serve
