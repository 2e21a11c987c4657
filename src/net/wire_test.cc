// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do the clear parts of a connection survive the way, and does nonsense stay an error?

#include "net/wire.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/copy_ascending.h"
#include "net/interfaces.h"

namespace sealane::net {
namespace {

TEST(Wire, AHandleSurvivesTheWay) {
  Handle handle;
  handle.address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7};
  handle.address.port = 4711;
  handle.listener.fill(3);
  handle.process.fill(4);
  std::array<uint8_t, Handle::kBytes> bytes;
  handle.encode(bytes);
  const auto parsed = Handle::parse(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->address, handle.address);
  EXPECT_EQ(parsed->address.text(), "10.0.0.7");
  EXPECT_EQ(parsed->listener, handle.listener);
}

TEST(Wire, HandlesOfOthersAreRefusedByName) {
  std::array<uint8_t, Handle::kBytes> foreign{};
  EXPECT_NE(Handle::parse(foreign).error().message.find("not Sealane's"), std::string::npos);
  Handle handle;
  handle.address.port = 1;
  handle.encode(foreign);
  foreign[8] = 99;
  EXPECT_NE(Handle::parse(foreign)->check_version().error().message.find("version 99"),
            std::string::npos);
  EXPECT_FALSE(Handle::parse(Bytes(foreign).first(127)).ok());
}

// Cut anywhere, or with something behind it: what is not all zeros there was not made by us.
TEST(Wire, HandlesThatWereCutOrGrewAreRefused) {
  Handle handle;
  handle.address.port = 5000;
  handle.address.ip.fill(1);
  handle.listener.fill(3);
  handle.process.fill(4);
  std::array<uint8_t, Handle::kBytes> whole;
  handle.encode(whole);
  for (size_t length = 0; length < Handle::kBytes; ++length) {
    EXPECT_FALSE(Handle::parse(Bytes(whole).first(length)).ok()) << length;
  }
  for (size_t at = 64; at < Handle::kBytes; ++at) {
    auto grown = whole;
    grown[at] = 1;
    EXPECT_FALSE(Handle::parse(grown).ok()) << at;
  }
}

TEST(Wire, AGreetingSaysForWhomItIsInEveryVersion) {
  Hello hello;
  hello.listener.fill(9);
  auto bytes = hello.encode();
  bytes[8] = 77;
  EXPECT_EQ(Hello::listener_of(bytes), hello.listener);
  bytes[0] ^= 1;
  EXPECT_FALSE(Hello::listener_of(bytes));
}

RC_GTEST_PROP(Wire, ArbitraryBytesParseOrFail, (std::vector<uint8_t> bytes)) {
  static_cast<void>(Hello::parse(bytes).ok());
  static_cast<void>(Answer::parse(bytes).ok());
  static_cast<void>(Handle::parse(bytes).ok());
  const size_t before = bytes.size();
  const auto frame = take_frame(bytes);
  if (!frame || !*frame) return;
  RC_ASSERT((*frame)->payload.size() + kFrameHeadBytes + bytes.size() == before);
}

RC_GTEST_PROP(CopyAscending, CopiesEveryByteAtAnyAlignment, (const std::vector<uint8_t>& bytes)) {
  const auto shift = *rc::gen::inRange<size_t>(0, 16);
  std::vector<uint8_t> to(bytes.size() + 32, 0x77);
  copy_ascending(bytes, to.data() + shift);
  RC_ASSERT(std::equal(bytes.begin(), bytes.end(), to.begin() + static_cast<ptrdiff_t>(shift)));
  RC_ASSERT(to[shift + bytes.size()] == 0x77);
  if (shift > 0) RC_ASSERT(to[shift - 1] == 0x77);
}

TEST(Interfaces, AreChosenAsNcclChoosesThem) {
  EXPECT_TRUE(interface_chosen("eth0", ""));
  EXPECT_TRUE(interface_chosen("eth0", "eth"));
  EXPECT_FALSE(interface_chosen("eth0", "=eth"));
  EXPECT_TRUE(interface_chosen("eth1", "ib0,eth1"));
  EXPECT_FALSE(interface_chosen("docker0", "^docker,lo"));
  EXPECT_TRUE(interface_chosen("eth0", "^docker,lo"));
  EXPECT_FALSE(interface_chosen("eth10", "^=eth1,eth10"));
  EXPECT_FALSE(find_interfaces("=nosuch0").ok());
}

}  // namespace
}  // namespace sealane::net
