// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Any sequence of events: no invariant of the pipeline breaks, and when everybody is done so are
// all copies. The first byte picks the policy.

#include <cstddef>
#include <cstdint>

#include "core/pipeline/testing/checked_driver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  const auto all = sealane::policies();
  const sealane::Policy& policy = all[2 + data[0] % (all.size() - 2)];  // those that carry copies
  sealane::testing::CheckedDriver(policy).run({data + 1, size - 1});
  return 0;
}
