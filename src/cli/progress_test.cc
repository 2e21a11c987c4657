// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.h"

#include <gtest/gtest.h>

namespace sealane::cli {
namespace {

TEST(ProgressBar, FromNothingToAll) {
  EXPECT_EQ(progress_bar(0, 10), "[....................]   0 %");
  EXPECT_EQ(progress_bar(3, 10), "[######..............]  30 %");
  EXPECT_EQ(progress_bar(10, 10), "[####################] 100 %");
  EXPECT_EQ(progress_bar(0, 0), "[####################] 100 %");
  EXPECT_EQ(progress_bar(11, 10), "[####################] 100 %");
}

}  // namespace
}  // namespace sealane::cli
