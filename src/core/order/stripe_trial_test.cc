// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/order/stripe_trial.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

using Way = StripeTrial::Way;

// Copies of different sizes at these rates until it is decided; the copies it took.
uint32_t decide(StripeTrial& trial, double whole_ns_per_byte, double striped_ns_per_byte) {
  uint32_t copies = 0;
  while (!trial.decided()) {
    const uint64_t bytes = 4'000'000u * (1 + copies % 3);
    const Way way = trial.next();
    const double rate = way == Way::whole ? whole_ns_per_byte : striped_ns_per_byte;
    // Somebody else is in the way, now and then.
    const double disturbed = copies % 4 == 1 ? 5 : 1;
    trial.handle(way, bytes,
                 Duration(static_cast<int64_t>(rate * disturbed * static_cast<double>(bytes))));
    ++copies;
  }
  return copies;
}

TEST(StripeTrial, BothWaysAreTriedAndTheFasterIsTaken) {
  StripeTrial trial;
  EXPECT_EQ(decide(trial, 0.05, 0.03), 2 * StripeTrial::kCopiesEach);
  EXPECT_EQ(trial.next(), Way::striped);
  trial.handle(Way::striped, 1, Duration(1'000'000));
  EXPECT_EQ(trial.next(), Way::striped) << "what is decided stays so";
}

TEST(StripeTrial, ALittleFasterIsNotEnough) {
  StripeTrial trial;
  decide(trial, 0.05, 0.047);
  EXPECT_EQ(trial.next(), Way::whole);
  StripeTrial slower;
  decide(slower, 0.03, 0.05);
  EXPECT_EQ(slower.next(), Way::whole);
}

}  // namespace
}  // namespace sealane
