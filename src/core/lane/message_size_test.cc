// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is the length of a driver's messages learnt, and not from what proves nothing?

#include "core/lane/message_size.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

TEST(MessageSize, WhatIsExpectedChangesNothing) {
  MessageSize size(1_MiB);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(size.observe(1_MiB, 5_MiB));
  EXPECT_FALSE(size.observe(300_KiB, 300_KiB)) << "a copy of one message";
  EXPECT_EQ(size.bytes(), 1_MiB);
}

TEST(MessageSize, ShorterOnesAreBelievedTheSecondTime) {
  MessageSize size(1_MiB);
  EXPECT_FALSE(size.observe(64_KiB, 5_MiB));
  EXPECT_FALSE(size.observe(1_MiB, 5_MiB)) << "it was a single one";
  EXPECT_FALSE(size.observe(64_KiB, 5_MiB));
  EXPECT_TRUE(size.observe(64_KiB, 2_MiB));
  EXPECT_EQ(size.bytes(), 64_KiB);
}

TEST(MessageSize, ACopyInOneMessageShowsThatTheyAreLonger) {
  MessageSize size(1_MiB);
  EXPECT_TRUE(size.observe(3_MiB, 3_MiB));
  EXPECT_EQ(size.bytes(), 4_MiB) << "most likely";
  EXPECT_FALSE(size.observe(3_MiB, 7_MiB));
  EXPECT_TRUE(size.observe(3_MiB, 7_MiB));
  EXPECT_EQ(size.bytes(), 3_MiB) << "but what comes counts";
}

TEST(MessageSize, SizesThatAreOfNoUseAreNotLearnt) {
  MessageSize size(1_MiB);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(size.observe(4_KiB, 5_MiB));
    EXPECT_FALSE(size.observe(64_MiB, 64_MiB));
  }
  EXPECT_EQ(size.bytes(), 1_MiB);
}

TEST(MessageSize, OnesThatVaryAreNotFollowed) {
  MessageSize size(1_MiB);
  for (uint64_t i = 0; i < 9; ++i) EXPECT_FALSE(size.observe(100_KiB + i % 2 * 16_KiB, 5_MiB));
}

}  // namespace
}  // namespace sealane
