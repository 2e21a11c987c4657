// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a waiter sleep at once, and does nobody sleep on?
#include "base/wait_word.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

std::atomic<int> yields{0};

}  // namespace

// In the place of libc's.
extern "C" int sched_yield() noexcept {
  yields.fetch_add(1);
  return 0;
}

namespace sealane {
namespace {

TEST(WaitWord, AWaiterLetsNobodyGoFirstBeforeItSleeps) {
  yields.store(0);  // of tests before this one
  std::this_thread::yield();
  ASSERT_EQ(yields.exchange(0), 1);
  WaitWord<uint32_t> word(0);
  std::atomic<int> begun{0};
  std::thread sleeping([&] {
    begun.store(1);
    word.wait_while(0);
  });
  while (begun.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  word.set(1);
  sleeping.join();
  EXPECT_EQ(yields.load(), 0);
}

TEST(WaitWord, NoChangeIsMissed) {
  constexpr uint64_t kRounds = 2'000;
  WaitWord<uint64_t> asked(UINT32_MAX - kRounds / 2);  // the lower half passes its end
  WaitWord<uint64_t> answered(asked.get());
  const uint64_t last = asked.get() + kRounds;
  std::thread other([&] {
    for (uint64_t seen = answered.get(); seen < last; ++seen) {
      asked.wait_while(seen);
      answered.add(1);
    }
  });
  for (uint64_t seen = asked.get(); seen < last; ++seen) {
    asked.set(seen + 1);
    answered.wait_while(seen);
  }
  other.join();
  EXPECT_EQ(answered.get(), last);
}

TEST(WaitWord, AllWhoWaitWake) {
  WaitWord<uint32_t> word(7);
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) waiters.emplace_back([&] { word.wait_while(7); });
  uint32_t seen = 6;
  EXPECT_FALSE(word.set_if(seen, 8));
  EXPECT_EQ(seen, 7u);
  EXPECT_TRUE(word.set_if(seen, 8));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(word.get(), 8u);
}

}  // namespace
}  // namespace sealane
