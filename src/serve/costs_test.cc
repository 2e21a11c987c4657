// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are the costs those of the modelled host, on a machine that is too busy to keep its pace?
#include "serve/costs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "os/pace.h"

namespace sealane::serve {
namespace {

// A pace that is kept exactly, by a thread that wakes up late from all it does but a seal.
uint64_t at_ns = 0;

Pace woken_late() {
  Pace late;
  late.clock = [] { return at_ns; };
  late.pace = [](int work, uint64_t bytes, uint64_t began) {
    const uint64_t ns_per_byte = work == Pace::digest ? 3 : work == Pace::aead_fast ? 2 : 1;
    if (work != Pace::aead_fast) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    at_ns = began + ns_per_byte * bytes;
  };
  return late;
}

// In a process of its own, because costs are measured once in each.
TEST(CostsDeathTest, AreTheModelledOnesHoweverLateAThreadWokeUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto measured_right = [] {
    set_pace(woken_late());
    const Costs costs = measure_costs(2);
    return costs.copy_ns_per_byte == 1.0 && costs.seal_ns_per_byte == 2.0 &&
           costs.digest_ns_per_byte == 3.0;
  };
  EXPECT_EXIT(std::_Exit(measured_right() ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sealane::serve
