// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are the promised hit rates met, for several seeds, and does the tournament know when to be
// silent?
#include "core/predict/tournament.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <fstream>
#include <set>
#include <string>

#include "base/bytes.h"
#include "core/predict/testing/patterns.h"

namespace sealane {
namespace {

using patterns::Pattern;

constexpr PredictLimits kLimits{.transfers_max = 1 << 13};
constexpr uint64_t kSeeds = 4;

double hit_rate(const Pattern& pattern, size_t leeway) {
  Tournament tournament(kLimits);
  return patterns::measure(tournament, pattern, leeway).hit_rate();
}

// The figures of docs/prediction.md with slack; `next` asks for the very next guess.
TEST(HitRate, Repetition) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_GE(hit_rate(patterns::repetition(seed), 1), 0.99);
    EXPECT_GE(hit_rate(patterns::after_warm_up(seed), 1), 0.99);
    EXPECT_GE(hit_rate(patterns::nested(seed), 1), 0.98);
    EXPECT_GE(hit_rate(patterns::phase_change(seed), 1), 0.98);
    EXPECT_GE(hit_rate(patterns::forward_backward(seed), 1), 0.98);
  }
}

TEST(HitRate, RepetitionAmongControlCopies) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_GE(hit_rate(patterns::with_control(seed, false), 1), 0.97);
    EXPECT_GE(hit_rate(patterns::with_control(seed, true), 4), 0.97);
    EXPECT_GE(hit_rate(patterns::forward_backward(seed, 3), 4), 0.93);
  }
}

TEST(HitRate, TwoLoops) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
    EXPECT_GE(hit_rate(patterns::two_loops(seed, true), 1), 0.95);
    EXPECT_GE(hit_rate(patterns::two_loops(seed, false), 4), 0.95);
  }
}

TEST(HitRate, Swaps) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_GE(hit_rate(patterns::fifo_swap(seed), 1), 0.97);
    EXPECT_GE(hit_rate(patterns::lifo_swap(seed, false), 1), 0.97);
    EXPECT_GE(hit_rate(patterns::lifo_swap(seed, true), 1), 0.97);
  }
}

TEST(HitRate, Sequential) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_GE(hit_rate(patterns::sequential(seed, 1, 4_MiB), 1), 0.97);
    EXPECT_GE(hit_rate(patterns::sequential(seed, 3, 4_MiB), 1), 0.97);
    EXPECT_GE(hit_rate(patterns::sequential(seed, 1, 12_MiB), 1), 0.97);
  }
}

TEST(Tournament, IsSilentOnRandomCopies) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const bool fresh : {false, true}) {
      Tournament tournament(kLimits);
      const auto meter = patterns::measure(tournament, patterns::random_copies(seed, fresh), 4);
      EXPECT_LE(meter.spoken_rate(), 0.001);
      EXPECT_EQ(tournament.leader(), "");
    }
  }
}

TEST(Tournament, FallsSilentWhenAPatternEnds) {
  Tournament tournament(kLimits);
  patterns::measure(tournament, patterns::repetition(1), 4);
  EXPECT_EQ(tournament.leader(), "repetition");
  size_t copies = 0;
  for (const auto& step : patterns::random_copies(1, false).steps) {
    if (tournament.leader().empty()) break;
    tournament.observe(step.transfer);
    ++copies;
  }
  EXPECT_LE(copies, 64u);
}

// A model is loaded, then blocks of its cache go out and in again.
TEST(Tournament, LearnsSmallCopiesAfterLargeOnes) {
  Tournament tournament(kLimits);
  for (uint64_t i = 0; i < 3; ++i) {
    tournament.observe({Direction::to_device, {i * 1_GiB, 64_MiB}});
  }
  for (int round = 0; round < 8; ++round) {
    for (uint64_t i = 4; i < 6; ++i) tournament.observe({Direction::to_host, {i * 1_GiB, 1_MiB}});
    for (uint64_t i = 4; i < 6; ++i) tournament.observe({Direction::to_device, {i * 1_GiB, 1_MiB}});
  }
  EXPECT_EQ(tournament.leader(), "fifo");
}

TEST(Tournament, NamesWhoIsRight) {
  const auto leader_after = [](const Pattern& pattern) {
    Tournament tournament(kLimits);
    patterns::measure(tournament, pattern, 4);
    return std::string(tournament.leader());
  };
  EXPECT_EQ(leader_after(patterns::forward_backward(1)), "repetition");
  EXPECT_EQ(leader_after(patterns::with_control(1, true)), "repetition-by-size");
  EXPECT_EQ(leader_after(patterns::two_loops(1, true)), "interleaved");
  EXPECT_EQ(leader_after(patterns::fifo_swap(1)), "fifo");
  EXPECT_EQ(leader_after(patterns::lifo_swap(1, false)), "lifo");
  EXPECT_EQ(leader_after(patterns::lifo_swap(1, true)), "lifo-grouped");
  EXPECT_EQ(leader_after(patterns::sequential(1, 3, 4_MiB)), "sequential");
}

TEST(Tournament, DoesNotFlap) {
  for (const Pattern& pattern : patterns::all(1)) {
    Tournament tournament(kLimits);
    size_t changes = 0;
    std::string leader;
    for (const auto& step : pattern.steps) {
      tournament.observe(step.transfer);
      if (tournament.leader() != leader) ++changes;
      leader = tournament.leader();
    }
    EXPECT_LE(changes, pattern.steps.size() / 100) << pattern.name;
  }
}

TEST(Tournament, RecoversWithinTwoPeriodsOfANewPhase) {
  Tournament tournament(kLimits);
  patterns::measure(tournament, patterns::repetition(1), 4);
  const auto other = patterns::scattered(50, 1_MiB, patterns::kOtherBase, 3);
  std::array<Guess, 1> next;
  for (int period = 0; period < 3; ++period) {
    size_t hits = 0;
    for (const Range& range : other) {
      hits += tournament.predict(next) == 1 && next[0].host == range ? 1 : 0;
      tournament.observe({Direction::to_device, range});
    }
    if (period == 2) {
      EXPECT_GE(hits, 49u);
    }
  }
}

TEST(Tournament, CountsHitsAndMisses) {
  Tournament tournament(kLimits);
  const Pattern pattern = patterns::repetition(1);
  patterns::measure(tournament, pattern, 4);
  std::set<std::string_view> names;
  for (const auto& score : tournament.scores()) {
    names.insert(score.name);
    EXPECT_EQ(score.hits + score.misses, pattern.steps.size()) << score.name;
    EXPECT_GE(score.recent_hit_rate(), 0);
    EXPECT_LE(score.recent_hit_rate(), 1);
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"repetition", "repetition-by-size", "interleaved", "fifo",
                                        "lifo", "lifo-grouped", "sequential", "markov"}));
}

TEST(Tournament, ConfidenceIsAShare) {
  for (const Pattern& pattern : patterns::all(2)) {
    Tournament tournament(kLimits);
    std::array<Guess, 8> next;
    for (const auto& step : pattern.steps) {
      const size_t count = tournament.predict(next);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_GE(next[i].confidence, 0.0f) << pattern.name;
        ASSERT_LE(next[i].confidence, 1.0f) << pattern.name;
      }
      tournament.observe(step.transfer);
    }
  }
}

// More distinct ranges than fit, frees among them: not a byte more than at construction.
TEST(Tournament, AllocatesOnlyWhenConstructed) {
  Tournament tournament({.transfers_max = 512});
  SeededRandom random(7);
  std::array<Guess, 8> next;
  const auto run = [&](int copies) {
    for (int i = 0; i < copies; ++i) {
      const Range range{random.below(4000) * 64_KiB, 4_KiB << random.below(12)};
      tournament.observe({random.chance(0.3) ? Direction::to_host : Direction::to_device, range});
      tournament.predict(next);
      if (random.chance(0.02)) tournament.forget({random.below(4000) * 64_KiB, 1_MiB});
    }
  };
  run(1);
  const size_t in_use = mallinfo2().uordblks;
  run(50'000);
  EXPECT_EQ(mallinfo2().uordblks, in_use);
}

TEST(Tournament, TakesTheMemoryItsPageStates) {
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const size_t before = allocated();
  const Tournament tournament;
  EXPECT_LE(allocated() - before, 48_MiB);  // docs/prediction.md
}

// Each lane of a process has one, and most programs know few ranges.
TEST(Tournament, UsesNoMemoryForWhatItHasNotSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer writes down what it knows of the memory";
#endif
  const auto resident_pages = [] {
    size_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident;
  };
  mallopt(M_MMAP_THRESHOLD, 128_KiB);  // fresh memory, whatever was freed before
  resident_pages();                    // what reading takes
  const size_t before = resident_pages();
  const Tournament tournament;
  EXPECT_LE((resident_pages() - before) * 4_KiB, 1_MiB);
}

}  // namespace
}  // namespace sealane
