// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a ring keep the order of what is in it, wherever something is put in or taken out, and
// wherever its memory wraps around?

#include "core/ring.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace sealane {
namespace {

std::vector<int> items(const Ring<int>& ring) {
  std::vector<int> all;
  for (size_t i = 0; i < ring.size(); ++i) all.push_back(ring[i]);
  return all;
}

TEST(Ring, InsertAndEraseKeepTheOrderOfTheOthers) {
  constexpr size_t kCapacity = 5;
  for (size_t turned = 0; turned < kCapacity; ++turned) {
    for (size_t at = 0; at < kCapacity; ++at) {
      Ring<int> ring(kCapacity);
      for (size_t i = 0; i < turned; ++i) {
        ring.push(0);
        ring.pop();
      }
      std::vector<int> expected;
      for (int i = 0; i < 4; ++i) {
        ring.push(i);
        expected.push_back(i);
      }
      ring.insert(at, 9);
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), 9);
      EXPECT_EQ(items(ring), expected) << turned << " " << at;
      EXPECT_TRUE(ring.full());
      ring.erase(at);
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
      EXPECT_EQ(items(ring), expected) << turned << " " << at;
      if (at < expected.size()) {
        ring.erase(at);
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
      }
      EXPECT_EQ(items(ring), expected) << turned << " " << at;
    }
  }
}

}  // namespace
}  // namespace sealane
