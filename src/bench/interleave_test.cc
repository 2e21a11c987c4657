// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/interleave.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace sealane::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class FakeClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void advance(Duration time) { now_ += time; }

 private:
  Instant now_;
};

TEST(Summarize, OneValueHasNoSpread) {
  const Summary one = summarize({7});
  EXPECT_DOUBLE_EQ(one.median, 7);
  EXPECT_DOUBLE_EQ(one.spread_pct, 0);
}

TEST(Summarize, MedianAndQuartilesOfUnsortedValues) {
  const Summary odd = summarize({50, 10, 30, 20, 40});
  EXPECT_DOUBLE_EQ(odd.median, 30);
  EXPECT_NEAR(odd.spread_pct, 100 * (40.0 - 20.0) / 30.0, 1e-9);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 3, 2}).median, 2.5);
}

TEST(Interleave, RatesAreBytesPerTime) {
  FakeClock clock;
  Interleave measured({{"fast", 8000, [&] { clock.advance(microseconds(1)); }, {}},
                       {"slow", 1000, [&] { clock.advance(microseconds(2)); }, {}}},
                      clock);
  measured.run_for(milliseconds(1));
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("fast").median, 8);
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("slow").median, 0.5);
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("slow").spread_pct, 0);
  EXPECT_DOUBLE_EQ(measured.ratio("fast", "slow").median, 16);
}

TEST(Interleave, UsesItsBudgetInWholeRounds) {
  FakeClock clock;
  Interleave measured({{"a", 1, [&] { clock.advance(milliseconds(2)); }, {}},
                       {"b", 1, [&] { clock.advance(milliseconds(3)); }, {}}},
                      clock);
  measured.run_for(milliseconds(52));
  EXPECT_EQ(measured.rounds(), 10u);  // and one that was not kept: 55 ms
  EXPECT_EQ(clock.now(), Instant(milliseconds(55)));
}

TEST(Interleave, AFewRoundsEvenWithoutTimeAndMoreWhenAskedAgain) {
  FakeClock clock;
  Interleave measured({{"a", 1, [&] { clock.advance(milliseconds(500)); }, {}}}, clock);
  measured.run_for(Duration(0));
  EXPECT_EQ(measured.rounds(), 3u);
  measured.run_for(Duration(0));
  EXPECT_EQ(measured.rounds(), 6u);
}

TEST(Interleave, PreparationIsNotTimed) {
  FakeClock clock;
  int prepared = 0;
  int ran = 0;
  const auto prepare = [&] {
    EXPECT_EQ(prepared, ran);
    ++prepared;
    clock.advance(milliseconds(7));
  };
  const auto run = [&] {
    ++ran;
    clock.advance(microseconds(1));
  };
  Interleave measured({{"a", 1000, run, prepare}}, clock);
  measured.run_for(milliseconds(50));
  EXPECT_EQ(prepared, ran);
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("a").median, 1);
}

// A core that is taken away now and then must not move the median.
TEST(Interleave, StolenTimeInAFewSlicesLeavesTheMedian) {
  FakeClock clock;
  int calls = 0;
  const auto run = [&] {
    clock.advance(microseconds(100));
    if (++calls % 4 == 0) clock.advance(milliseconds(30));
  };
  Interleave measured({{"a", 400'000, run, {}}}, clock);
  measured.run_for(milliseconds(2000));
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("a").median, 4);
}

// The machine changes speed from round to round: rates scatter, but "twice as fast" holds in every
// round, and only a paired ratio sees it.
TEST(Interleave, RatiosArePairedWithinRounds) {
  FakeClock clock;
  int slices = 0;
  const auto drifting = [&](int cost) {
    const int round = slices++ / 2;
    clock.advance(microseconds(cost * (1 + round % 7)));
  };
  Interleave measured(
      {{"twice", 1000, [&] { drifting(1); }, {}}, {"once", 1000, [&] { drifting(2); }, {}}}, clock);
  measured.run_for(milliseconds(20));
  EXPECT_GT(measured.rate_gb_s("once").spread_pct, 50);
  EXPECT_DOUBLE_EQ(measured.ratio("twice", "once").median, 2);
  EXPECT_NEAR(measured.ratio("twice", "once").spread_pct, 0, 1e-9);
}

TEST(Interleave, EveryVariantOncePerRoundInChangingOrder) {
  FakeClock clock;
  std::string calls;
  std::vector<Variant> variants;
  for (const char name : {'a', 'b', 'c'}) {
    variants.push_back({std::string(1, name),
                        1,
                        [&calls, &clock, name] {
                          calls += name;
                          clock.advance(milliseconds(1));
                        },
                        {}});
  }
  Interleave(std::move(variants), clock).run_for(milliseconds(300));
  std::set<std::string> orders;
  for (size_t at = 0; at < calls.size(); at += 3) {
    std::string round = calls.substr(at, 3);
    orders.insert(round);
    std::sort(round.begin(), round.end());
    ASSERT_EQ(round, "abc");
  }
  EXPECT_EQ(orders.size(), 6u);  // all there are
}

TEST(Interleave, AClockTooCoarseForASliceDoesNotDivideByZero) {
  FakeClock clock;
  Interleave measured({{"a", 5, [] {}, {}}}, clock);
  measured.run_for(Duration(0));
  EXPECT_DOUBLE_EQ(measured.rate_gb_s("a").median, 5);
}

}  // namespace
}  // namespace sealane::bench
