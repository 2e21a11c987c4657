// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a message of the driver's the one that a copy in flight expects?

#include "core/copy/message_match.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

constexpr uint64_t kHost = 1 << 20;

TEST(MessageMatch, ThePlaceTells) {
  MessageMatch match;
  EXPECT_EQ(match.owner_of({kHost, 100}), MessageOwner::driver) << "nothing was handed over";
  match.begin({kHost, 300}, 200);
  EXPECT_EQ(match.owner_of({kHost + 200, 100}), MessageOwner::driver) << "not its turn";
  EXPECT_EQ(match.owner_of({kHost, 301}), MessageOwner::driver) << "longer than what was handed";
  EXPECT_EQ(match.owner_of({kHost, 10}), MessageOwner::copy) << "its first piece";
  match.advance(200);
  EXPECT_EQ(match.owner_of({kHost, 100}), MessageOwner::driver) << "once more";
  EXPECT_EQ(match.owner_of({kHost + 200, 100}), MessageOwner::copy);
  match.advance(100);
  EXPECT_TRUE(match.over());
  EXPECT_EQ(match.owner_of({kHost + 300, 1}), MessageOwner::driver);
}

// A driver that seals from a buffer of its own names no place that tells.
TEST(MessageMatch, WithoutAPlaceTheBytesTellIfTheLengthFits) {
  MessageMatch match;
  match.begin({kHost, 300}, 100);
  EXPECT_EQ(match.owner_of({0x5000, 99}), MessageOwner::driver) << "in pieces, or another one";
  EXPECT_EQ(match.owner_of({0x5000, 100}), MessageOwner::copy_if_same_bytes);
  match.advance(100);
  EXPECT_EQ(match.owner_of({0x5000, 100}), MessageOwner::copy_if_same_bytes);
  match.advance(50);
  EXPECT_EQ(match.owner_of({0x5000, 100}), MessageOwner::driver) << "nobody knows where it is";
  match.begin({kHost, 300}, 100);
  EXPECT_EQ(match.owner_of({0x5000, 100}), MessageOwner::copy_if_same_bytes) << "another turn";
  match.end();
  EXPECT_EQ(match.owner_of({0x5000, 100}), MessageOwner::driver);
}

}  // namespace
}  // namespace sealane
