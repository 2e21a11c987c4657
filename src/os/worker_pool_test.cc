// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is every index of a loop done once, whoever calls and however many do?

#include "os/worker_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sealane {
namespace {

TEST(WorkerPool, EveryIndexOnceForManyCallersAtOnce) {
  for (const unsigned workers : {0u, 1u, 4u}) {
    WorkerPool& pool = *new WorkerPool(workers);  // its threads stay
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (size_t round = 0; round < 300; ++round) {
          const size_t count = round % 17;
          std::vector<std::atomic<int>> done(count);
          pool.each(count, [&](size_t i) { ++done[i]; });
          for (const auto& times : done) wrong += times != 1 ? 1 : 0;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0) << workers;
  }
}

TEST(WorkerPool, JobsAreDoneWhenNoLoopWantsAWorker) {
  WorkerPool& pool = *new WorkerPool(2);  // its threads never end
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        pool.post([](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &done));
  }
  std::atomic<int> steps{0};
  pool.each(50, [&](size_t) { ++steps; });
  EXPECT_EQ(steps, 50);
  while (done < 20) std::this_thread::yield();
}

// A job with a loop that cannot end before it is let go.
struct Slow {
  WorkerPool& pool;
  std::atomic<bool> go{false};
  std::atomic<int> begun{0};
  std::atomic<int> done{0};

  void post() {
    ASSERT_TRUE(pool.post(
        [](void* context) {
          auto& slow = *static_cast<Slow*>(context);
          slow.pool.each_behind(8, [&](size_t) {
            ++slow.begun;
            while (!slow.go) std::this_thread::yield();
          });
          ++slow.done;
        },
        this));
  }
};

TEST(WorkerPool, ALoopDoesNotWaitForJobs) {
  WorkerPool& pool = *new WorkerPool(2);
  auto& slow = *new Slow{pool};
  slow.post();
  while (slow.begun < 2) std::this_thread::yield();  // all workers are in it
  std::atomic<int> steps{0};
  pool.each(50, [&](size_t) { ++steps; });
  EXPECT_EQ(steps, 50);
  EXPECT_EQ(slow.done, 0);
  slow.go = true;
  while (slow.done < 1) std::this_thread::yield();
  EXPECT_EQ(slow.begun, 8);
}

TEST(WorkerPool, AJobsLoopGivesWayToALoop) {
  WorkerPool& pool = *new WorkerPool(1);
  auto& slow = *new Slow{pool};
  slow.post();
  while (slow.begun < 1) std::this_thread::yield();
  std::atomic<bool> the_worker_came{false};
  std::thread caller([&] {
    const auto me = std::this_thread::get_id();
    pool.each(2, [&](size_t) {
      if (std::this_thread::get_id() != me) the_worker_came = true;
      while (!the_worker_came) std::this_thread::yield();
    });
  });
  slow.go = true;  // the worker leaves its job for the loop and comes back
  caller.join();
  while (slow.done < 1) std::this_thread::yield();
  EXPECT_EQ(slow.begun, 8);
}

TEST(WorkerPool, WhoeverWaitsForAJobCanDoIt) {
  WorkerPool& pool = *new WorkerPool(1);
  auto& stuck = *new std::atomic<int>(0);
  ASSERT_TRUE(pool.post(
      [](void* context) {
        auto& state = *static_cast<std::atomic<int>*>(context);
        state = 1;
        while (state != 2) std::this_thread::yield();
      },
      &stuck));
  while (stuck != 1) std::this_thread::yield();  // the only worker
  auto& slow = *new Slow{pool};
  slow.go = true;
  slow.post();
  EXPECT_TRUE(pool.help());
  EXPECT_EQ(slow.done, 1);
  EXPECT_EQ(slow.begun, 8);
  EXPECT_FALSE(pool.help());
  stuck = 2;
}

TEST(WorkerPool, WhoeverWaitsForALoopOfAJobTakesPartInIt) {
  WorkerPool& pool = *new WorkerPool(1);
  auto& slow = *new Slow{pool};
  slow.post();
  while (slow.begun < 1) std::this_thread::yield();
  std::thread letting_go([&] {
    while (slow.begun < 2) std::this_thread::yield();
    slow.go = true;
  });
  EXPECT_TRUE(pool.help());  // the second index: the worker is in the first
  letting_go.join();
  while (slow.done < 1) std::this_thread::yield();
  EXPECT_EQ(slow.begun, 8);
}

TEST(WorkerPool, WithoutWorkersNobodyTakesAJob) {
  WorkerPool& pool = *new WorkerPool(0);
  EXPECT_FALSE(pool.post([](void*) {}, nullptr));
}

}  // namespace
}  // namespace sealane
