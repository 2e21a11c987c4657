// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/stripes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "live/serve/fake_driver_for_tests.h"

namespace sealane::serve {
namespace {

RC_GTEST_PROP(Stripes, PartsAreTheWholeCutAtMessages, ()) {
  Piece whole;
  whole.device_address = 4096;
  whole.bytes = *rc::gen::inRange<uint64_t>(1, 64_MiB);
  const uint64_t messages = (whole.bytes + Stripes::kBorder - 1) / Stripes::kBorder;
  const auto count =
      static_cast<unsigned>(std::min<uint64_t>(messages, *rc::gen::inRange(2u, Stripes::kMax + 1)));
  uint64_t done = 0;
  for (unsigned n = 0; n < count; ++n) {
    const Piece part = Stripes::part_of(whole, n, count);
    RC_ASSERT(part.device_address == whole.device_address + done);
    RC_ASSERT(part.bytes > 0);
    RC_ASSERT(part.bytes % Stripes::kBorder == 0 || done + part.bytes == whole.bytes);
    done += part.bytes;
  }
  RC_ASSERT(done == whole.bytes);
}

class StripesTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 7_MiB + 100;

  StripesTest() {
    driver_.device.resize(8_MiB);
    EXPECT_EQ(driver_.make_lane(0, own_), kSuccess);
    SystemRandom().fill(host_);
  }
  ~StripesTest() override { stripes_.close(); }

  Code carry() {
    const Piece whole{1, FakeDriver::kDeviceBase, host_.data(), kBytes, true};
    return stripes_.carry(whole, [&](const Piece& part) {
      return driver_.copy(own_, Direction::to_device, part.device_address, part.host, part.bytes);
    });
  }
  bool arrived() const { return std::equal(host_.begin(), host_.end(), driver_.device.begin()); }

  // Threads of helpers that leave may still look at these.
  FakeDriver& driver_ = *new FakeDriver;
  Stripes& stripes_ = *new Stripes(driver_, {}, 3);
  LaneContext own_;
  std::vector<uint8_t> host_ = std::vector<uint8_t>(kBytes);
};

TEST_F(StripesTest, BytesArriveHoweverTheyTravel) {
  EXPECT_FALSE(stripes_.takes(Stripes::kBytesMin - 1));
  ASSERT_EQ(carry(), kSuccess);
  EXPECT_EQ(driver_.contexts(), 3);
  for (int i = 0; i < 20; ++i) {
    SystemRandom().fill(host_);
    ASSERT_EQ(carry(), kSuccess);
    ASSERT_TRUE(arrived());
  }
  const bool kept = stripes_.takes(kBytes);
  EXPECT_EQ(driver_.contexts(), kept ? 3 : 1) << "what does not pay is given back";
}

TEST_F(StripesTest, TheErrorOfAnyPartIsTheCopys) {
  ASSERT_EQ(carry(), kSuccess) << "the first travels whole";
  driver_.break_context(3, kForged);
  EXPECT_EQ(carry(), kForged);
  EXPECT_FALSE(stripes_.takes(kBytes));
  EXPECT_EQ(driver_.contexts(), 1);
  EXPECT_EQ(carry(), kSuccess) << "whole";
}

TEST_F(StripesTest, WithoutContextsCopiesTravelWhole) {
  driver_.contexts_max = 2;
  EXPECT_EQ(carry(), kSuccess);
  EXPECT_TRUE(arrived());
  EXPECT_FALSE(stripes_.takes(kBytes));
  EXPECT_EQ(driver_.contexts(), 1) << "the one that was had is given back";
}

TEST_F(StripesTest, AForgedTrialIsTheCopysError) {
  driver_.next_copy = kForged;
  EXPECT_EQ(carry(), kForged);
  EXPECT_EQ(driver_.contexts(), 1);
}

}  // namespace
}  // namespace sealane::serve
