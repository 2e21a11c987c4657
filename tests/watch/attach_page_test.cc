// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is the head of a page taken only if all of it can be used?

#include "watch/attach_page.h"

#include <gtest/gtest.h>

#include <bit>

namespace sealane::serve {
namespace {

using Bytes = std::array<uint8_t, sizeof(AttachHead)>;

AttachHead good() {
  AttachHead head{};
  head.magic = AttachHead::kMagic;
  head.version = AttachHead::kVersion;
  head.pid = 17;
  head.bytes = kAttachAnswerBytesMax;
  return head;
}

bool is_taken(const AttachHead& head) {
  return parse_attach_head(std::bit_cast<Bytes>(head)).has_value();
}

TEST(AttachPage, AHeadIsReadBack) {
  const auto read = parse_attach_head(std::bit_cast<Bytes>(good()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->pid, 17);
  EXPECT_EQ(read->bytes, kAttachAnswerBytesMax);
}

TEST(AttachPage, WhatCannotBeUsedIsNotTaken) {
  AttachHead head = good();
  head.magic[0] = 'S';
  EXPECT_FALSE(is_taken(head));
  head = good();
  ++head.version;
  EXPECT_FALSE(is_taken(head));
  head = good();
  head.bytes = kAttachAnswerBytesMax + 1;
  EXPECT_FALSE(is_taken(head));
  head.bytes = ~0u;
  EXPECT_FALSE(is_taken(head));
  head = good();
  head.presence.fill('x');
  EXPECT_FALSE(is_taken(head));
  head.presence.back() = '\0';
  EXPECT_TRUE(is_taken(head));
  const Bytes bytes = std::bit_cast<Bytes>(good());
  EXPECT_FALSE(parse_attach_head(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(parse_attach_head({}));
}

}  // namespace
}  // namespace sealane::serve
