// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the paper's rules do what the paper says they do, and no more?
#include "core/predict/paper.h"

#include <gtest/gtest.h>

#include <array>

#include "base/bytes.h"
#include "core/predict/testing/patterns.h"

namespace sealane {
namespace {

double hit_rate(const patterns::Pattern& pattern) {
  PaperPredictor paper(1 << 13);
  return patterns::measure(paper, pattern, 1).hit_rate();
}

TEST(Paper, FollowsItsThreePatterns) {
  EXPECT_GE(hit_rate(patterns::repetition(1)), 0.99);
  EXPECT_GE(hit_rate(patterns::forward_backward(1)), 0.98);
  EXPECT_GE(hit_rate(patterns::with_control(1, true)), 0.97);
  EXPECT_GE(hit_rate(patterns::fifo_swap(1)), 0.97);
  EXPECT_GE(hit_rate(patterns::lifo_swap(1, false)), 0.97);
}

TEST(Paper, DoesNotKnowTheOthers) {
  EXPECT_LE(hit_rate(patterns::two_loops(1, true)), 0.10);
  EXPECT_LE(hit_rate(patterns::lifo_swap(1, true)), 0.10);
  EXPECT_LE(hit_rate(patterns::sequential(1, 1, 4_MiB)), 0.01);
}

TEST(Paper, NamesThePattern) {
  const auto leader_after = [](const patterns::Pattern& pattern) {
    PaperPredictor paper(1 << 13);
    patterns::measure(paper, pattern, 1);
    return std::string(paper.leader());
  };
  EXPECT_EQ(leader_after(patterns::repetition(1)), "repetition");
  EXPECT_EQ(leader_after(patterns::fifo_swap(1)), "fifo");
  EXPECT_EQ(leader_after(patterns::lifo_swap(1, false)), "lifo");
  EXPECT_EQ(leader_after(patterns::random_copies(1, false)), "");
}

TEST(Paper, TakesSmallCopiesForControlTraffic) {
  PaperPredictor paper(1024);
  std::array<Guess, 1> next;
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 8; ++i) {
      paper.observe({Direction::to_device, {i * 1_MiB, PaperPredictor::kSwapBytesMin - 1}});
    }
  }
  EXPECT_EQ(paper.predict(next), 0u);
}

TEST(Paper, OneCopyOutOfLineEndsAPattern) {
  PaperPredictor paper(1024);
  std::array<Guess, 3> next;
  for (uint64_t i = 0; i < 24; ++i) {
    paper.observe({Direction::to_device, {i % 8 * 1_MiB, 1_MiB}});
  }
  EXPECT_EQ(paper.predict(next), 3u);
  EXPECT_EQ(next[0].host, (Range{0, 1_MiB}));
  paper.observe({Direction::to_device, {90_MiB, 1_MiB}});
  EXPECT_EQ(paper.predict(next), 0u);
  EXPECT_EQ(paper.leader(), "");
}

}  // namespace
}  // namespace sealane
