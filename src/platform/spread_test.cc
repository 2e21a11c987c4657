// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "platform/spread.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "platform/fields.h"
#include "platform/reader.h"

namespace sealane {
namespace {

TEST(Spread, FollowsFromTheSourceUnlessTheFileSaysIt) {
  EXPECT_EQ(kind_of("assumed: as on another"), Knowledge::assumed);
  EXPECT_EQ(kind_of("a benchmark; measured on a laptop, not on this machine"),
            Knowledge::elsewhere);
  EXPECT_EQ(kind_of("vendor's data sheet"), Knowledge::published);
  const Platform sxm = *find_platform("h100-sxm");
  for (const Parameter& each : sxm.parameters) EXPECT_EQ(each.kind, kind_of(each.source));
  const auto spread_of = [&](const std::string& key) {
    const auto found = std::find_if(sxm.parameters.begin(), sxm.parameters.end(),
                                    [&](const Parameter& each) { return each.key == key; });
    return found != sxm.parameters.end() ? found->spread : -1;
  };
  EXPECT_DOUBLE_EQ(spread_of("to_device.cc.link_gb_per_s"), 0.15);
  EXPECT_DOUBLE_EQ(spread_of("gpu.compute_efficiency"), 0.30);
  EXPECT_DOUBLE_EQ(spread_of("host.cores"), 0);
}

TEST(Spread, OfADrawnFactorIsMetFourTimesOutOfFive) {
  constexpr uint32_t kMany = 1000;
  uint32_t within = 0;
  for (uint32_t i = 0; i < kMany; ++i) {
    const double factor = drawn_factor("anything", 0.3, i, kMany);
    within += factor <= 1.3 && factor >= 1 / 1.3 ? 1 : 0;
  }
  EXPECT_NEAR(within, 800, 3);
}

RC_GTEST_PROP(Spread, EveryStratumIsTakenOnceAndDrawsRepeat, ()) {
  const auto count = *rc::gen::inRange<uint32_t>(1, 40);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  std::set<double> factors;
  for (uint32_t i = 0; i < count; ++i) {
    const double factor = drawn_factor("x", 0.2, i, count, seed);
    RC_ASSERT(factor == drawn_factor("x", 0.2, i, count, seed));
    factors.insert(factor);
  }
  RC_ASSERT(factors.size() == count);
}

// What is one thing under two names moves together; what is known exactly does not move.
RC_GTEST_PROP(Spread, ADrawnPlatformIsOneThatCouldBe, ()) {
  static const Platform platform = *find_platform("h100-nvl-tdx");
  const auto count = *rc::gen::inRange<uint32_t>(1, 20);
  const auto index = *rc::gen::inRange<uint32_t>(0, count);
  Platform other = drawn(platform, index, count, *rc::gen::arbitrary<uint64_t>());
  for (const Field& field : fields_of(other)) {
    if (const auto* number = std::get_if<Number>(&field.target)) {
      RC_ASSERT(*number->to >= number->least);
      RC_ASSERT(*number->to <= number->most);
    }
  }
  RC_ASSERT(other.cc.message_bytes_max == platform.cc.message_bytes_max);
  RC_ASSERT(other.host.cores == platform.host.cores);
  const double off = std::log(other.gpu.launch_off_us / platform.gpu.launch_off_us);
  const double cc = std::log(other.gpu.launch_cc_us / platform.gpu.launch_cc_us);
  RC_ASSERT(off * cc >= 0);
}

// What is one thing under two names is moved as one, and nothing else with it.
TEST(Spread, OneMoverIsMovedAlone) {
  const auto platform = find_platform("h100-tdx");
  ASSERT_TRUE(platform);
  const Platform above = moved(*platform, "to_device.link_gb_per_s", 1);
  EXPECT_GT(above.to_device.off.link_gb_per_s, platform->to_device.off.link_gb_per_s);
  EXPECT_GT(above.to_device.cc.link_gb_per_s, platform->to_device.cc.link_gb_per_s);
  EXPECT_EQ(above.to_host.cc.link_gb_per_s, platform->to_host.cc.link_gb_per_s);
  EXPECT_EQ(above.gpu.launch_cc_us, platform->gpu.launch_cc_us);
  size_t found = 0;
  for (const Mover& mover : movers_of(*platform)) {
    if (mover.name != "to_device.link_gb_per_s") continue;
    ++found;
    EXPECT_EQ(mover.kind, Knowledge::assumed) << "the least known of the two";
  }
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace sealane
