// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which words does a list in one line have?

#include "base/words.h"

#include <gtest/gtest.h>

namespace sealane {
namespace {

using Words = std::vector<std::string>;

TEST(Words, AreWhatStandsBetweenSeparators) {
  EXPECT_EQ(split("a,b,c", ','), (Words{"a", "b", "c"}));
  EXPECT_EQ(split("a,b", ':'), (Words{"a,b"}));
  EXPECT_EQ(split("", ','), Words());
}

TEST(Words, NothingBetweenTwoSeparatorsIsAnEmptyWord) {
  EXPECT_EQ(split(",a,,b", ','), (Words{"", "a", "", "b"}));
}

TEST(Words, NothingBehindTheLastSeparatorIsNone) { EXPECT_EQ(split("a,", ','), (Words{"a"})); }

}  // namespace
}  // namespace sealane
