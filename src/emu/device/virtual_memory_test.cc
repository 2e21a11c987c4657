// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/virtual_memory.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace sealane::emu {
namespace {

constexpr uint64_t kLowHeap = 0x2287'9d10;  // of a program that is loaded at a fixed place

TEST(VirtualMemory, ContainsNothingUntilSomethingIsReserved) {
  const VirtualMemory memory;
  EXPECT_FALSE(memory.contains(0));
  EXPECT_FALSE(memory.contains(kLowHeap));
  EXPECT_FALSE(memory.contains(uint64_t{1} << 46));
}

TEST(VirtualMemory, ContainsWhatItReservedAndNothingBelow) {
  VirtualMemory memory;
  const uint64_t address = memory.reserve(4_MiB, 0, 0);
  ASSERT_NE(address, 0u);
  EXPECT_TRUE(memory.contains(address));
  EXPECT_TRUE(memory.contains(address + 4_MiB - 1));
  EXPECT_FALSE(memory.contains(kLowHeap));
  EXPECT_TRUE(memory.release(address, 4_MiB));
}

}  // namespace
}  // namespace sealane::emu
