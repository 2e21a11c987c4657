// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a rank find the faster way to write, and find it again when the machine changes?

#include "transport/store_choice.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

constexpr size_t kBytes = 64 << 10;

// So many records on a machine on which they take so long; how many of them were streamed.
int write(StoreChoice& choice, int records, int cached_us, int streamed_us) {
  int streamed = 0;
  for (int i = 0; i < records; ++i) {
    const bool past = choice.streamed(kBytes);
    streamed += past;
    choice.handle_written(kBytes, std::chrono::microseconds(past ? streamed_us : cached_us));
  }
  return streamed;
}

TEST(StoreChoice, KeepsTheFasterWayAndTriesTheOtherNowAndThen) {
  StoreChoice near;
  EXPECT_EQ(write(near, 1000, 6, 7), 10);
  StoreChoice far;
  EXPECT_GE(write(far, 1000, 50, 7), 980);
}

TEST(StoreChoice, FollowsAMachineThatChanges) {
  StoreChoice choice;
  write(choice, 1000, 6, 7);
  EXPECT_GE(write(choice, 1000, 50, 7), 890);
  EXPECT_LE(write(choice, 2000, 6, 7), 600);
  EXPECT_LE(write(choice, 1000, 6, 7), 10);
}

TEST(StoreChoice, OneInterruptionChangesNothing) {
  StoreChoice choice;
  write(choice, 50, 6, 7);
  choice.handle_written(kBytes, std::chrono::milliseconds(20));
  EXPECT_LE(write(choice, 500, 6, 7), 60);
}

TEST(StoreChoice, ShortRecordsStayInTheCaches) {
  StoreChoice choice;
  write(choice, 100, 50, 7);
  EXPECT_TRUE(choice.streamed(kBytes));
  EXPECT_FALSE(choice.streamed(1000));
}

}  // namespace
}  // namespace sealane
