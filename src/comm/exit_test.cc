// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// May a program call exit() while a group of its process joins or works, or while a thread ends
// that has joined one? Handlers of exit() then take down OpenSSL under the feet of the threads that
// use it, and of those that free what it kept for them.

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "comm/exit_hold.h"
#include "comm/group_fixture.h"

namespace sealane {
namespace {

constexpr int kRounds = 20;  // of a rank, after everybody's handlers have run
constexpr int kStillRunning = 3;
constexpr int kRanks = 2;

std::atomic<bool> handlers_over{false};
std::atomic<int> begun{0};
std::atomic<int> ended{0};
ThreadGroup* group = nullptr;
std::unique_ptr<Communicator> communicators[kRanks];

// Registered before anything of ours, so it runs after every handler that we bring along. Groups
// may still be ended then, as those of static objects are.
void wait_for_the_ranks() {
  handlers_over = true;
  const Instant end = SteadyClock().now() + std::chrono::minutes(5);
  while (ended < kRanks && SteadyClock().now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (ended < kRanks) _exit(kStillRunning);
  for (auto& communicator : communicators) communicator.reset();
  delete group;
  _exit(0);
}

// By the communicator's own threads.
bool sums(uint32_t rank) {
  auto& comm = communicators[rank];
  if (comm == nullptr) {
    auto made = Communicator::create(group->options(rank));
    if (!made) return false;
    comm = std::move(*made);
  }
  std::vector<float> values(100'000, 1);
  return comm->start(sum_of(values)).get().ok();
}

bool joins(uint32_t rank) {
  communicators[rank].reset();
  return sums(rank);
}

[[noreturn]] void exit_while_others(bool (*work)(uint32_t rank)) {
  atexit(wait_for_the_ranks);
  setenv("SEALANE_AEAD", "openssl", 1);
  GroupSetup setup;
  setup.timeout = std::chrono::seconds(5);  // of one that is left alone
  setup.limits.messages = 4;                // new keys, again and again
  group = new ThreadGroup(setup);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    std::thread([=] {
      for (int round = 0; round < kRounds; round += handlers_over ? 1 : 0) {
        if (!work(rank)) break;
        if (begun < kRanks) ++begun;
      }
      ++ended;
      while (true) pause();  // its end would be OpenSSL's to notice
    }).detach();
  }
  while (begun < kRanks && ended == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  exit(1);  // the code is the last handler's
}

class Exit : public ::testing::TestWithParam<bool (*)(uint32_t)> {
  // The process begins anew: nothing has used OpenSSL before the first handler is registered.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(Exit, IsQuietWhileAGroupIsAtWork) {
  for (int run = 0; run < 5; ++run) {
    EXPECT_EXIT(exit_while_others(GetParam()), ::testing::ExitedWithCode(0), "") << run;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, Exit, ::testing::Values(&sums, &joins),
                         [](const auto& one) { return one.index == 0 ? "Sums" : "Joins"; });

// ---- The end of a thread ----

constexpr int kFreedTooLate = 4;

std::atomic<bool> may_exit{false};
std::atomic<bool> ours_waited{false};  // our handler is through, OpenSSL's comes next
std::atomic<bool> freed_too_late{false};
std::thread* ending = nullptr;
thread_local bool watched = false;

void pass_time() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

// The thread's first lasts until exit() is at work, and a while longer.
void watched_free(void* memory, const char*, int) {
  if (watched && !may_exit.exchange(true)) {
    while (!process_exits()) pass_time();
    for (int i = 0; i < 20 && !ours_waited; ++i) pass_time();
  }
  if (watched && ours_waited) freed_too_late = true;
  free(memory);
}

void wait_for_the_thread() {
  ours_waited = true;
  ending->join();
  _exit(freed_too_late ? kFreedTooLate : 0);
}

void hold_and_use_openssl(bool until_exit) {
  const ExitHold hold;
  uint8_t byte = 0;
  if (!hold || RAND_bytes(&byte, 1) != 1) abort();  // by a generator of the thread's own
  while (until_exit && !process_exits()) {
    may_exit = true;
    pass_time();
  }
}

void end_after_exit_went_on() {
  hold_and_use_openssl(true);
  watched = true;
  while (!ours_waited) pass_time();
}

void end_while_exit_begins() {
  hold_and_use_openssl(false);
  watched = true;
}

[[noreturn]] void exit_while_a_thread_ends(void (*thread)()) {
  const auto allocate = [](size_t count, const char*, int) { return malloc(count); };
  const auto resize = [](void* memory, size_t count, const char*, int) {
    return realloc(memory, count);
  };
  const bool watching = CRYPTO_set_mem_functions(allocate, resize, watched_free) == 1 &&
                        OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr) == 1 &&
                        atexit(wait_for_the_thread) == 0;  // between OpenSSL's handler and ours
  if (!watching) abort();
  ending = new std::thread(thread);
  while (!may_exit) pass_time();
  exit(1);  // the code is the handler's
}

class ExitOfThreads : public ::testing::TestWithParam<void (*)()> {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(ExitOfThreads, NothingIsFreedBehindAHold) {
  EXPECT_EXIT(exit_while_a_thread_ends(GetParam()), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Threads, ExitOfThreads,
                         ::testing::Values(&end_after_exit_went_on, &end_while_exit_begins),
                         [](const auto& one) { return one.index == 0 ? "Held" : "HadHeld"; });

}  // namespace
}  // namespace sealane
