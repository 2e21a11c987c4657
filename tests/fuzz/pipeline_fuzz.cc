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
  constexpr const char* kPolicies[] = {"pipellm", "sealane", "speculate"};  // those that seal ahead
  const sealane::Policy& policy = *sealane::find_policy(kPolicies[data[0] % 3]);
  sealane::testing::CheckedDriver(policy).run({data + 1, size - 1});
  return 0;
}
