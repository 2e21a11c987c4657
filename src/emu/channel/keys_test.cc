// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/keys.h"

#include <gtest/gtest.h>

#include <set>

namespace sealane::emu {
namespace {

ChannelSeed seed() { return {{1, 2, 3}, 77}; }

TEST(Keys, BothEndsCountAloneAndAgree) {
  KeySchedule host(seed(), 5000);
  KeySchedule device(seed(), 5000);
  std::set<std::pair<GcmKey, GcmIv>> used;
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(host.advance(i * 10), device.advance(i * 10));
    EXPECT_EQ(host.key(), device.key());
    EXPECT_EQ(host.iv(), device.iv());
    EXPECT_TRUE(used.insert({host.key(), host.iv()}).second) << "an IV was used twice";
  }
}

// What a listener can learn the counter from: neighbours differ by 2^(t+1)-1 in dword 0 only.
TEST(Keys, IvIsACounterUnderAMask) {
  KeySchedule keys(seed(), UINT64_MAX);
  keys.advance(1);
  GcmIv before = keys.iv();
  for (uint32_t counter = 2; counter < 1000; ++counter) {
    keys.advance(1);
    const GcmIv now = keys.iv();
    const uint32_t difference = load_le<uint32_t>(now.data()) ^ load_le<uint32_t>(before.data());
    EXPECT_EQ(difference, counter ^ (counter - 1));
    EXPECT_EQ(load_le<uint64_t>(now.data() + 4), load_le<uint64_t>(before.data() + 4));
    before = now;
  }
}

TEST(Keys, RotateAfterSoManyBytes) {
  KeySchedule keys(seed(), 100);
  EXPECT_FALSE(keys.advance(60));
  const GcmKey first = keys.key();
  EXPECT_FALSE(keys.advance(60));
  EXPECT_EQ(keys.counter(), 2u);
  EXPECT_TRUE(keys.advance(60));
  EXPECT_EQ(keys.counter(), 1u);
  EXPECT_NE(keys.key(), first);
}

}  // namespace
}  // namespace sealane::emu
