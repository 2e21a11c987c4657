// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <sstream>

#include "base/bytes.h"

namespace sealane {
namespace {

constexpr char kText[] =
    "55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:01 131 /usr/bin/env\n"
    "55d0c1b00000-55d0c1b21000 rw-p 00000000 00:00 0   [heap]\n"
    "not a mapping\n"
    "7f0000000000-7f0000004000 rw-s 00000000 00:01 77  /dev/zero (deleted)\n";

std::optional<Mapping> find_in_text(uint64_t address) {
  std::istringstream text(kText);
  return find_mapping(text, address);
}

TEST(Mappings, ReadsTheKernelsText) {
  const auto file = find_in_text(0x55d0c0a00fff);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->of_file);
  EXPECT_FALSE(file->shared);
  EXPECT_EQ(file->range, (Range{0x55d0c0a00000, 0x21000}));

  const auto heap = find_in_text(0x55d0c1b00000);
  ASSERT_TRUE(heap);
  EXPECT_FALSE(heap->of_file);
  EXPECT_FALSE(heap->shared);

  const auto shared = find_in_text(0x7f0000003fff);
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->of_file);
  EXPECT_TRUE(shared->shared);
}

TEST(Mappings, EndsBeforeItsEnd) {
  EXPECT_FALSE(find_in_text(0x7f0000004000));
  EXPECT_FALSE(find_in_text(0x55d0c0a21000));
  EXPECT_FALSE(find_in_text(0));
}

// The system call and the text are two ways to the same answer.
TEST(Mappings, BothWaysAgreeOnThisProcess) {
  const auto mappings = Mappings::open();
  ASSERT_TRUE(mappings) << mappings.error().message;
  void* shared = mmap(nullptr, 8_KiB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* own = mmap(nullptr, 8_KiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const void* addresses[] = {shared, own, reinterpret_cast<const void*>(&find_mapping), &own};
  for (const void* pointer : addresses) {
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const auto asked = mappings->find(address);
    ASSERT_TRUE(asked) << asked.error().message;
    std::ifstream text("/proc/self/maps");
    const auto read = find_mapping(text, address);
    ASSERT_TRUE(asked->has_value() && read);
    EXPECT_TRUE((*asked)->range.contains({address, 1}));
    EXPECT_EQ((*asked)->shared, read->shared);
    EXPECT_EQ((*asked)->of_file, read->of_file);
  }
  munmap(own, 8_KiB);
  munmap(shared, 8_KiB);
  const auto nothing = mappings->find(0);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
}

}  // namespace
}  // namespace sealane
