// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/byte_count.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace sealane {
namespace {

TEST(ByteCount, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*parse_byte_count("1", 1_GiB), 1u);
  EXPECT_EQ(*parse_byte_count("4096", 1_GiB), 4096u);
  EXPECT_EQ(*parse_byte_count("64K", 1_GiB), 64_KiB);
  EXPECT_EQ(*parse_byte_count("3m", 1_GiB), 3_MiB);
  EXPECT_EQ(*parse_byte_count("1G", 1_GiB), 1_GiB);
}

TEST(ByteCount, RefusesEverythingElse) {
  for (const char* text : {"", "K", "x", "-1", "+1", " 1", "1 ", "1.5K", "64KB", "64 K", "0x10"}) {
    const auto refused = parse_byte_count(text, 1_GiB);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_NE(refused.error().message.find("like 4096, 64K or 1M"), std::string::npos) << text;
  }
}

TEST(ByteCount, RefusesZeroAndHuge) {
  for (const char* text : {"0", "0K", "1073741825", "1025M", "2G", "18446744073709551615G",
                           "99999999999999999999999", "17179869184G"}) {
    const auto refused = parse_byte_count(text, 1_GiB);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message.find("not between 1 byte and 1 GiB"), std::string::npos);
  }
}

TEST(ByteCount, WritesTheLargestUnitThatDivides) {
  EXPECT_EQ(format_byte_count(100), "100 B");
  EXPECT_EQ(format_byte_count(64_KiB), "64 KiB");
  EXPECT_EQ(format_byte_count(1536), "1536 B");
  EXPECT_EQ(format_byte_count(1280_KiB), "1280 KiB");
  EXPECT_EQ(format_byte_count(4_MiB), "4 MiB");
  EXPECT_EQ(format_byte_count(1_GiB), "1 GiB");
}

}  // namespace
}  // namespace sealane
