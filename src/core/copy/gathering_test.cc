// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do copies travel together exactly where that is cheaper than a crossing each?

#include "core/copy/gathering.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sealane {
namespace {

constexpr uint64_t kHost = 1 << 20;
constexpr uint64_t kDevice = uint64_t{1} << 40;

TEST(Gathering, WhatLiesEndToEndTravelsAtNoCost) {
  CrossingCosts costs;
  costs.toll = Duration(1);
  costs.scatter = costs.toll * 1000;
  costs.copy_ns_per_byte = 1000;
  Gathering group(costs);
  group.begin({kHost, 100}, kDevice);
  EXPECT_TRUE(group.admit({kHost + 100, 50}, kDevice + 100));
  EXPECT_FALSE(group.admit({kHost + 150, 50}, kDevice + 151)) << "would have to be scattered";
  EXPECT_FALSE(group.admit({kHost + 151, 50}, kDevice + 150)) << "would have to be gathered";
  EXPECT_TRUE(group.admit({kHost + 150, 50}, kDevice + 150));
  EXPECT_EQ(group.copies(), 3u);
  EXPECT_EQ(group.bytes(), 200u);
}

TEST(Gathering, ScatteringPaysWhereItCostsLessThanTheToll) {
  CrossingCosts costs;
  costs.copy_ns_per_byte = 0;
  costs.scatter = costs.toll / 3;  // two pieces are two copies on the device: 2/3 of a toll
  Gathering group(costs);
  group.begin({kHost, 4}, kDevice);
  EXPECT_TRUE(group.admit({kHost + 64, 4}, kDevice + 64));
  EXPECT_EQ(group.device_pieces(), 2u);
  costs.scatter = costs.toll / 2;
  Gathering dear(costs);
  dear.begin({kHost, 4}, kDevice);
  EXPECT_FALSE(dear.admit({kHost + 64, 4}, kDevice + 64));
}

TEST(Gathering, IsBounded) {
  CrossingCosts costs;
  costs.copies_max = 3;
  Gathering group(costs);
  group.begin({kHost, 4}, kDevice);
  EXPECT_FALSE(group.admit({kHost + 4, costs.bytes_max - 3}, kDevice + 4));
  EXPECT_TRUE(group.admit({kHost + 4, 4}, kDevice + 4));
  EXPECT_TRUE(group.admit({kHost + 8, 4}, kDevice + 8));
  EXPECT_FALSE(group.admit({kHost + 12, 4}, kDevice + 12));
}

// Together is never dearer than one by one, whatever the costs and wherever the bytes lie.
RC_GTEST_PROP(Gathering, NeverCostsMoreThanACrossingEach, ()) {
  CrossingCosts costs;
  costs.toll = Duration(*rc::gen::inRange(1, 50'000));
  costs.scatter = Duration(*rc::gen::inRange(0, 50'000));
  costs.copy_ns_per_byte = *rc::gen::inRange(0, 100) / 100.0;
  Gathering group(costs);
  const auto bytes = [] { return *rc::gen::inRange<uint64_t>(1, 5000); };
  Range host{kHost, bytes()};
  uint64_t device = kDevice;
  group.begin(host, device);
  for (int i = 0; i < 20; ++i) {
    const Range next{host.end() + *rc::gen::element<uint64_t>(0, 0, 16), bytes()};
    const uint64_t there = device + host.bytes + *rc::gen::element<uint64_t>(0, 0, 16);
    if (!group.admit(next, there)) continue;
    host = next;
    device = there;
  }
  double cost = static_cast<double>(costs.toll.count());
  if (group.host_pieces() > 1) cost += costs.copy_ns_per_byte * static_cast<double>(group.bytes());
  if (group.device_pieces() > 1) {
    cost += static_cast<double>(costs.scatter.count()) * static_cast<double>(group.device_pieces());
  }
  const double alone =
      static_cast<double>(costs.toll.count()) * static_cast<double>(group.copies());
  RC_ASSERT(cost <= alone + 20);  // rounding
}

}  // namespace
}  // namespace sealane
