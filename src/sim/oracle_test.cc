// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the judge see what no broken rule of the core leads to?

#include "sim/oracle.h"

#include <gtest/gtest.h>

namespace sealane::sim {
namespace {

TEST(Oracle, SealingAheadNeedsMappedMemory) {
  Memory memory;
  Oracle oracle(memory, 1 << 20);
  oracle.allocates({1000, 100});
  oracle.seals_ahead({1000, 100});
  EXPECT_FALSE(oracle.broken());
  oracle.frees({1000, 100});
  oracle.call_copy(0, {.host = {1050, 10}});
  oracle.seals_ahead({1050, 10});
  EXPECT_FALSE(oracle.broken());
  oracle.seals_ahead({1050, 11});
  ASSERT_TRUE(oracle.broken());
  EXPECT_STREQ(oracle.broken()->rule, "unmapped");
}

}  // namespace
}  // namespace sealane::sim
