// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <map>

#include "base/bytes.h"

namespace sealane::emu {
namespace {

TEST(DeviceMemory, TranslatesInsideABlockOnly) {
  const auto owned = DeviceMemory::create(1_MiB);
  DeviceMemory& memory = **owned;
  const auto address = memory.allocate(1000, 1);
  ASSERT_TRUE(address);
  EXPECT_NE(memory.translate(*address, 1000), nullptr);
  EXPECT_NE(memory.translate(*address + 999, 1), nullptr);
  EXPECT_EQ(memory.translate(*address, 1001), nullptr);
  EXPECT_EQ(memory.translate(*address + 1000, 1), nullptr);
  EXPECT_NE(reinterpret_cast<uint64_t>(memory.translate(*address, 1)), *address);
  EXPECT_FALSE(memory.release(*address + 512));
  EXPECT_TRUE(memory.release(*address));
  EXPECT_FALSE(memory.release(*address));
  EXPECT_EQ(memory.translate(*address, 1), nullptr);
}

TEST(DeviceMemory, ABlockHasRoomToTheEndOfItsGranule) {
  const auto owned = DeviceMemory::create(1_MiB);
  DeviceMemory& memory = **owned;
  const auto address = memory.allocate(4, 1);
  ASSERT_TRUE(address);
  EXPECT_FALSE(memory.find(*address + 4));
  const auto room = memory.find_room(*address + 511);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->address, *address);
  EXPECT_EQ(room->bytes, 4u);
  EXPECT_EQ(room->room, 512u);
  EXPECT_FALSE(memory.find_room(*address + 512));
  EXPECT_TRUE(memory.release(*address));
  EXPECT_FALSE(memory.find_room(*address));
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(DeviceMemory, RetiredBlocksStayUntilTheyAreRecycled) {
  const auto owned = DeviceMemory::create(1_MiB);
  DeviceMemory& memory = **owned;
  const auto address = memory.allocate(1_MiB, 1);
  const auto block = memory.retire(*address);
  ASSERT_TRUE(block);
  EXPECT_FALSE(memory.retire(*address)) << "it was freed already";
  EXPECT_NE(memory.translate(*address, 1), nullptr) << "what stands before the free uses it";
  EXPECT_FALSE(memory.allocate(512, 1));
  memory.recycle(*block);
  EXPECT_EQ(memory.translate(*address, 1), nullptr);
  EXPECT_TRUE(memory.allocate(1_MiB, 1));
}

// Whatever the order of allocations and frees: blocks never overlap, keep their bytes, and after
// the last free everything is one gap again.
RC_GTEST_PROP(DeviceMemory, KeepsBlocksApart, (const std::vector<uint16_t>& steps)) {
  const auto owned = DeviceMemory::create(256_KiB);
  DeviceMemory& memory = **owned;
  std::map<uint64_t, uint64_t> live;
  for (const uint16_t step : steps) {
    if (step % 3 != 0 || live.empty()) {
      const uint64_t bytes = step % 9000 + 1;
      if (const auto address = memory.allocate(bytes, 1)) {
        const auto next = live.lower_bound(*address);
        RC_ASSERT(next == live.end() || *address + bytes <= next->first);
        if (next != live.begin()) {
          const auto before = std::prev(next);
          RC_ASSERT(before->first + before->second <= *address);
        }
        live[*address] = bytes;
      }
    } else {
      auto victim = std::next(live.begin(), step % static_cast<long>(live.size()));
      RC_ASSERT(memory.release(victim->first));
      live.erase(victim);
    }
  }
  memory.release_owned(1);
  RC_ASSERT(memory.used_bytes() == 0u);
  const auto all = memory.allocate(256_KiB, 1);
  RC_ASSERT(all.has_value());
  RC_ASSERT(memory.release(*all));
}

}  // namespace
}  // namespace sealane::emu
