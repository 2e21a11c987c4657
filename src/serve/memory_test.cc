// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are ranges found by any address inside them, is staging memory bounded, re-used and wiped, and
// does memory that is gone fail instead of fault?

#include "serve/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "base/bytes.h"

namespace sealane::serve {
namespace {

TEST(RangeMap, FindsWhatHoldsAnAddress) {
  RangeMap<int> map;
  map.add({100, 50}, 1);
  map.add({200, 50}, 2);
  EXPECT_FALSE(map.find(99));
  EXPECT_EQ(map.find(100)->what, 1);
  EXPECT_EQ(map.find(149)->what, 1);
  EXPECT_FALSE(map.find(150));
  EXPECT_FALSE(map.add_apart({140, 20}, 3));
  EXPECT_FALSE(map.add_apart({190, 100}, 3));
  EXPECT_TRUE(map.add_apart({150, 50}, 3));
  EXPECT_EQ(map.remove(200)->range.bytes, 50u);
  EXPECT_FALSE(map.remove(201));
  map.remove_if([](const auto& entry) { return entry.what == 1; });
  EXPECT_FALSE(map.find(100));
  EXPECT_EQ(map.find(160)->what, 3);
}

TEST(Staging, IsBoundedReusedAndWiped) {
  Staging staging(1_MiB);
  void* first = staging.take(300 << 10);  // takes 512 KiB
  void* second = staging.take(512 << 10);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(staging.take(1), nullptr) << "over its bound";
  std::memset(first, 7, 300 << 10);
  staging.give(first);
  auto* again = static_cast<const uint8_t*>(staging.take(300 << 10));
  EXPECT_EQ(again, first);
  for (size_t i = 0; i < 300 << 10; ++i) ASSERT_EQ(again[i], 0) << i;
  staging.give(second);
  EXPECT_NE(staging.take(1), nullptr) << "an idle piece of another size makes room";
}

TEST(Staging, ClosedItKeepsNothing) {
  Staging staging(1_MiB);
  void* taken = staging.take(300 << 10);
  void* idle = staging.take(300 << 10);
  ASSERT_TRUE(taken != nullptr && idle != nullptr);
  staging.give(idle);
  staging.close();
  EXPECT_FALSE(is_usable(idle, 1, Access::write));
  EXPECT_TRUE(is_usable(taken, 1, Access::write));
  EXPECT_EQ(staging.take(1), nullptr);
  staging.give(taken);
  EXPECT_FALSE(is_usable(taken, 1, Access::write));
}

TEST(Memory, ThatIsGoneFailsAndDoesNotFault) {
  char here[64] = {};
  void* gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  EXPECT_TRUE(read_memory(gone, here, sizeof here));
  EXPECT_TRUE(write_memory(here, gone, sizeof here));
  EXPECT_TRUE(is_usable(gone, 4096, Access::write));
  munmap(gone, 4096);
  EXPECT_FALSE(read_memory(gone, here, sizeof here));
  EXPECT_FALSE(write_memory(here, gone, sizeof here));
  EXPECT_FALSE(is_usable(gone, 4096, Access::write));
}

TEST(Memory, IsUsableAsFarAsItMayBeReadAndWritten) {
  const auto map = [](int protection) {
    return mmap(nullptr, 8192, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void* const none = map(PROT_NONE);
  void* const read = map(PROT_READ);
  void* const all = map(PROT_READ | PROT_WRITE);
  EXPECT_FALSE(is_usable(none, 8192, Access::read));
  EXPECT_FALSE(is_usable(none, 8192, Access::write));
  EXPECT_TRUE(is_usable(read, 8192, Access::read));
  EXPECT_FALSE(is_usable(read, 8192, Access::write));
  EXPECT_TRUE(is_usable(all, 8192, Access::write));
  EXPECT_TRUE(is_usable(static_cast<char*>(all) + 4095, 2, Access::write)) << "on two pages";
  mprotect(static_cast<char*>(all) + 4096, 4096, PROT_NONE);
  EXPECT_FALSE(is_usable(static_cast<char*>(all) + 4095, 2, Access::read)) << "half of it";
  EXPECT_FALSE(is_usable(all, UINT64_MAX, Access::read));
  for (void* const each : {none, read, all}) munmap(each, 8192);
}

}  // namespace
}  // namespace sealane::serve
