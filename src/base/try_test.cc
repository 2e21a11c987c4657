// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what fails leave the function with its own error, and does everything else go on?

#include "base/try.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sealane {
namespace {

Status passes(bool well) { return well ? Status() : Status(peer_error("rank 3 is gone")); }

Result<std::unique_ptr<int>> made(bool well) {
  if (!well) return usage_error("cannot be made");
  return std::make_unique<int>(7);
}

Result<int> all_of_it(bool first, bool second, int& came_to) {
  came_to = 1;
  SEALANE_TRY(passes(first));
  came_to = 2;
  SEALANE_LET(const auto value, made(second));  // a value that can only be moved
  came_to = 3;
  std::unique_ptr<int> other;
  SEALANE_LET(other, made(true));
  return *value + *other;
}

TEST(Try, WhatGoesWellGoesOn) {
  int came_to = 0;
  const auto sum = all_of_it(true, true, came_to);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, 14);
}

TEST(Try, AFailedStatusLeavesWithItsOwnError) {
  int came_to = 0;
  const auto sum = all_of_it(false, true, came_to);
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.error().kind, ErrorKind::peer);
  EXPECT_EQ(sum.error().message, "rank 3 is gone");
  EXPECT_EQ(came_to, 1);
}

TEST(Try, AFailedResultLeavesWithItsOwnError) {
  int came_to = 0;
  const auto sum = all_of_it(true, false, came_to);
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.error().kind, ErrorKind::usage);
  EXPECT_EQ(came_to, 2);
}

}  // namespace
}  // namespace sealane
