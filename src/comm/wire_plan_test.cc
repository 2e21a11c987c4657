// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a rank's memory stay within its bound for every group there can be?

#include "comm/wire_plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "comm/device_windows.h"
#include "core/session/identity.h"

namespace sealane {
namespace {

TEST(WirePlan, HasOneBoundForEveryGroup) {
  for (uint32_t size = 2; size <= kRanksMax; size += 1 + size / 50) {
    for (const uint32_t local : {1u, 2u, std::max(1u, size / 2), size - 1, size}) {
      for (const uint32_t streams : {1u, 2u, 8u}) {
        for (const uint32_t wanted : {64u << 10, 1u << 20}) {
          const GroupShape group = {size, local, streams};
          const WirePlan plan = plan_wires(group, wanted);
          SCOPED_TRACE(concat(size, " ranks, ", local, " on a host, ", streams, " streams"));
          EXPECT_LE(wire_bytes(group, plan), kWireBytesMax);
          EXPECT_EQ(plan.payload_bytes % 64, 0u);
          EXPECT_GE(plan.ring_records(), 2u);
        }
      }
    }
  }
  // Two windows on GPU memory, and four records of scratch.
  EXPECT_LE(kWireBytesMax + 2 * DeviceWindows::kBytes + (256u << 10), size_t{32} << 20);
}

TEST(WirePlan, KeepsFullRecordsInGroupsOfUsualSize) {
  EXPECT_EQ(plan_wires({64, 64, 1}, 64 << 10).payload_bytes, 64u << 10);
  EXPECT_EQ(plan_wires({16, 8, 2}, 64 << 10).payload_bytes, 64u << 10);
}

}  // namespace
}  // namespace sealane
