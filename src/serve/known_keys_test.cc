// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does a key of the driver's die with its use?

#include "serve/known_keys.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.h"
#include "seal/find_in_memory_for_tests.h"

namespace sealane::serve {
namespace {

using Raw = std::array<uint8_t, Key::kBytes>;
constexpr Duration kLater = KnownKeys::kGrace * 2;

KnownKey know(KnownKeys& keys, const Raw& raw, Instant now) {
  bool fresh = false;
  return keys.know(std::span<const uint8_t, Key::kBytes>(raw), now, fresh);
}

// Eight rotations; after each the driver's context takes the new key.
TEST(KnownKeys, ARetiredKeyIsNowhereInTheProcess) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  KnownKeys keys;
  Instant now{};
  std::vector<Needle> retired;
  KnownKey held;
  for (int i = 0; i < 8; ++i) {
    Raw raw;
    SystemRandom().fill(raw);
    held = know(keys, raw, now);
    retired.emplace_back(raw);
    wipe(raw);
    now += kLater;
  }
  if (held.schedule == nullptr) GTEST_SKIP() << "no engine here: libcrypto serves";
  EXPECT_NE(retired.back().places(), "") << "the one in use is there";
  retired.pop_back();
  keys.retire(now);
  EXPECT_EQ(keys.size(), 1u);
  for (Needle& needle : retired) EXPECT_EQ(needle.places(), "");
  held = {};
  keys.retire(now);
  EXPECT_EQ(keys.size(), 0u);
}

// A driver that makes a context for every message has none in between.
TEST(KnownKeys, AKeyAskedForAgainAndAgainKeepsItsSchedule) {
  KnownKeys keys;
  Raw raw;
  SystemRandom().fill(raw);
  Instant now{};
  const uint64_t number = know(keys, raw, now).number;
  for (int i = 0; i < 100; ++i) {
    now += KnownKeys::kGrace / 2;
    keys.retire(now);
    EXPECT_EQ(know(keys, raw, now).number, number);
  }
}

}  // namespace
}  // namespace sealane::serve
