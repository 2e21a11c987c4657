// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Random histories against checked_driver.h's books, for every policy that seals ahead.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "base/random.h"
#include "core/pipeline/testing/checked_driver.h"

namespace sealane {
namespace {

RC_GTEST_PROP(Pipeline, KeepsItsPromisesUnderAnyHistory, ()) {
  const auto events = *rc::gen::resize(600, rc::gen::arbitrary<std::vector<uint8_t>>());
  for (const Policy& policy : policies()) {
    if (policy.speculates()) testing::CheckedDriver(policy).run(events);
  }
}

// Long histories in which guesses come true: most requests follow a loop.
RC_GTEST_PROP(Pipeline, KeepsItsPromisesWhenGuessesComeTrue, ()) {
  SeededRandom random(*rc::gen::arbitrary<uint64_t>());
  std::vector<uint8_t> events;
  uint8_t next = 0;
  for (int i = 0; i < 1500; ++i) {
    const bool request = random.chance(0.2);
    const bool regular = random.chance(0.95);
    events.push_back(request && regular ? 0 : static_cast<uint8_t>(random.between(4, 14)));
    events.push_back(request && regular ? static_cast<uint8_t>(2 * (next++ % 5))
                                        : static_cast<uint8_t>(random.next()));
  }
  testing::CheckedDriver driver(*find_policy("speculate"));
  driver.run(events);
  RC_ASSERT(driver.pipeline().slots().in_use() <= 24U);
}

}  // namespace
}  // namespace sealane
