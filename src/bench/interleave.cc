// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace sealane::bench {
namespace {

constexpr size_t kRoundsMin = 3;  // per run_for(): a median of fewer is a single slice

double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

Summary summarize(std::vector<double> values) {
  SEALANE_CHECK(!values.empty(), "summary of no values");
  std::sort(values.begin(), values.end());
  const double median = quantile(values, 0.5);
  const double range = quantile(values, 0.75) - quantile(values, 0.25);
  return {median, median == 0 ? 0 : 100 * range / median};
}

Interleave::Interleave(std::vector<Variant> variants, const Clock& clock, uint64_t seed)
    : variants_(std::move(variants)),
      clock_(clock),
      random_(seed),
      order_(variants_.size()),
      rates_(variants_.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
}

void Interleave::run_for(Duration budget) {
  const Instant end = clock_.now() + budget;
  if (rounds_ == 0) run_round(/*keep=*/false);
  for (size_t done = 0; done < kRoundsMin || clock_.now() < end; ++done) run_round(/*keep=*/true);
}

void Interleave::run_round(bool keep) {
  for (size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[random_.below(left)]);
  }
  for (const size_t index : order_) {
    const Variant& variant = variants_[index];
    if (variant.prepare) variant.prepare();
    const Instant start = clock_.now();
    variant.run();
    const Duration taken = std::max(clock_.now() - start, Duration(1));
    if (!keep) continue;
    // Bytes per nanosecond are GB per second.
    rates_[index].push_back(static_cast<double>(variant.slice_bytes) /
                            static_cast<double>(taken.count()));
  }
  if (keep) ++rounds_;
}

const std::vector<double>& Interleave::rates_of(const std::string& name) const {
  const auto found = std::find_if(variants_.begin(), variants_.end(),
                                  [&](const Variant& variant) { return variant.name == name; });
  SEALANE_CHECK(found != variants_.end(), "no variant has this name");
  return rates_[static_cast<size_t>(found - variants_.begin())];
}

Summary Interleave::rate_gb_s(const std::string& name) const { return summarize(rates_of(name)); }

Summary Interleave::ratio(const std::string& name, const std::string& base) const {
  const std::vector<double>& above = rates_of(name);
  const std::vector<double>& below = rates_of(base);
  std::vector<double> ratios(rounds_);
  for (size_t i = 0; i < rounds_; ++i) ratios[i] = above[i] / below[i];
  return summarize(std::move(ratios));
}

}  // namespace sealane::bench
