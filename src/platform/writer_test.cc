// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a platform that was written the platform that is read?

#include "platform/writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "platform/fields.h"
#include "platform/reader.h"

namespace sealane {
namespace {

std::vector<Parameter> by_key(std::vector<Parameter> parameters) {
  std::sort(parameters.begin(), parameters.end(),
            [](const Parameter& a, const Parameter& b) { return a.key < b.key; });
  return parameters;
}

TEST(PlatformWriter, WhatIsWrittenIsRead) {
  ASSERT_FALSE(platform_names().empty());
  for (const std::string& name : platform_names()) {
    const auto shipped = find_platform(name);
    ASSERT_TRUE(shipped) << shipped.error().message;
    const auto again = parse_platform(platform_text(*shipped), "again.toml");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->description, shipped->description);
    EXPECT_EQ(again->to_device.cc.toll_us, shipped->to_device.cc.toll_us);
    EXPECT_EQ(again->gpu.kernel_slowdown, shipped->gpu.kernel_slowdown);
    EXPECT_EQ(again->cc.copies_block, shipped->cc.copies_block);
    const auto before = by_key(shipped->parameters);
    const auto after = by_key(again->parameters);
    ASSERT_EQ(after.size(), before.size()) << name;
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i].key, before[i].key);
      EXPECT_EQ(after[i].value, before[i].value) << after[i].key;
      EXPECT_EQ(after[i].source, before[i].source) << after[i].key;
      EXPECT_EQ(after[i].spread, before[i].spread) << after[i].key;
    }
  }
}

// Names come from the machine: none of them ends the line or the string it is in.
TEST(PlatformWriter, TextIsQuoted) {
  Platform platform = *find_platform("h100-tdx");
  platform.description = "a \"quoted\" \\ and\nbroken one";
  const auto again = parse_platform(platform_text(platform), "again.toml");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->description, "a \"quoted\" \\ and broken one");
}

}  // namespace
}  // namespace sealane
