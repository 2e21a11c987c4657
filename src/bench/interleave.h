// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures variants of one job against each other on a machine that is not ours alone. A hypervisor
// takes the core away for milliseconds at a time, memory bandwidth and clock rates drift: so every
// variant runs in slices well below that, all of them once per round, in an order shuffled anew for
// each round. Rates are medians over slices. Ratios are medians of the ratios *within* rounds,
// where both sides saw nearly the same machine; a ratio of two medians would not cancel the drift.
//
// Concurrency: one thread.
// Failure:     none; a clock too coarse to time a slice counts it as one nanosecond.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace sealane::bench {

struct Variant {
  std::string name;
  uint64_t slice_bytes = 0;       // what one run() works through
  std::function<void()> run;      // one slice: 0.02 ms to a few ms
  std::function<void()> prepare;  // untimed, before every run(): warms caches; may be empty
};

struct Summary {
  double median = 0;
  double spread_pct = 0;  // interquartile range in percent of the median
};

// At least one value. Quartiles between two values are interpolated.
Summary summarize(std::vector<double> values);

class Interleave {
 public:
  // `clock` must outlive this. The seed decides the orders only.
  Interleave(std::vector<Variant> variants, const Clock& clock, uint64_t seed = 1);

  // Whole rounds until `budget` is used up, a few at least. Can be called again for more. The very
  // first round is not kept: it pays for cold code and lazy binding.
  void run_for(Duration budget);

  size_t rounds() const { return rounds_; }

  // By the variants' names; at least one round has run.
  Summary rate_gb_s(const std::string& name) const;
  Summary ratio(const std::string& name, const std::string& base) const;  // > 1: `name` is faster

 private:
  void run_round(bool keep);
  const std::vector<double>& rates_of(const std::string& name) const;

  std::vector<Variant> variants_;
  const Clock& clock_;
  SeededRandom random_;
  std::vector<size_t> order_;
  std::vector<std::vector<double>> rates_;  // GB/s; one list per variant, one entry per round
  size_t rounds_ = 0;
};

}  // namespace sealane::bench
