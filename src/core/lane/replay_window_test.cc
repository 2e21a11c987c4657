// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is each position accepted once, whatever the order of arrival?

#include "core/lane/replay_window.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace sealane {
namespace {

TEST(ReplayWindow, AcceptsOutOfOrderOnce) {
  ReplayWindow window;
  for (const uint64_t position : {5, 3, 4, 900, 0}) {
    EXPECT_FALSE(window.seen(position));
    window.accept(position);
    EXPECT_TRUE(window.seen(position));
  }
}

TEST(ReplayWindow, TreatsTheTooOldAsSeen) {
  ReplayWindow window;
  window.accept(ReplayWindow::kSpan + 10);
  EXPECT_TRUE(window.seen(10));
  EXPECT_FALSE(window.seen(11));
}

// Against a set that remembers everything, with jumps of all sizes.
RC_GTEST_PROP(ReplayWindowProperty, AgreesWithASetThatForgetsNothing, ()) {
  ReplayWindow window;
  std::set<uint64_t> accepted;
  uint64_t newest = 0;
  const int steps = *rc::gen::inRange(0, 400);
  for (int i = 0; i < steps; ++i) {
    const uint64_t back = *rc::gen::weightedOneOf<uint64_t>(
        {{5, rc::gen::inRange<uint64_t>(0, 70)}, {1, rc::gen::inRange<uint64_t>(0, 3000)}});
    const uint64_t position =
        *rc::gen::arbitrary<bool>() ? newest + back : newest - std::min(newest, back);
    const bool too_old =
        !accepted.empty() && newest - std::min(newest, position) >= ReplayWindow::kSpan;
    RC_ASSERT(window.seen(position) == (too_old || accepted.contains(position)));
    if (window.seen(position)) continue;
    window.accept(position);
    accepted.insert(position);
    newest = std::max(newest, position);
  }
}

}  // namespace
}  // namespace sealane
