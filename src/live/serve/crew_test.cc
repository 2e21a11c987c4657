// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is every index of a loop done once, whoever calls and however many do?

#include "live/serve/crew.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sealane::serve {
namespace {

TEST(Crew, EveryIndexOnceForManyCallersAtOnce) {
  for (const unsigned workers : {0u, 1u, 4u}) {
    Crew& crew = *new Crew(workers);  // its threads stay
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (size_t round = 0; round < 300; ++round) {
          const size_t count = round % 17;
          std::vector<std::atomic<int>> done(count);
          crew.each(count, [&](size_t i) { ++done[i]; });
          for (const auto& times : done) wrong += times != 1 ? 1 : 0;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0) << workers;
  }
}

TEST(Crew, JobsAreDoneWhenNoLoopWantsAWorker) {
  Crew& crew = *new Crew(2);  // its threads never end
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        crew.post([](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &done));
  }
  std::atomic<int> steps{0};
  crew.each(50, [&](size_t) { ++steps; });
  EXPECT_EQ(steps, 50);
  while (done < 20) std::this_thread::yield();
}

TEST(Crew, WithoutWorkersNobodyTakesAJob) {
  Crew& crew = *new Crew(0);
  EXPECT_FALSE(crew.post([](void*) {}, nullptr));
}

}  // namespace
}  // namespace sealane::serve
