// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/collective_trial.h"

#include <algorithm>
#include <numeric>

#include "base/try.h"
#include "bench/interleave.h"

namespace sealane::bench {
namespace {

constexpr uint64_t kSliceNs = 10'000'000;
constexpr uint64_t kSliceCallsMax = 1000;
constexpr uint32_t kRoundsMin = 7;
constexpr uint64_t kLockstepIterations = 4;

// Mean time of one iteration of a slice.
double mean_us(const std::vector<uint64_t>& times_ns) {
  const double total = std::accumulate(times_ns.begin(), times_ns.end(), 0.0);
  return total / static_cast<double>(times_ns.size()) / 1000;
}

double percentile_us(std::vector<uint64_t> times_ns, double share) {
  std::sort(times_ns.begin(), times_ns.end());
  const auto index = static_cast<size_t>(share * static_cast<double>(times_ns.size() - 1) + 0.5);
  return static_cast<double>(times_ns[index]) / 1000;
}

struct Samples {
  std::vector<double> slice_us;  // one per round
  std::vector<uint64_t> all_ns;
  uint64_t wrong = 0;
};

double median_ratio(const Samples& of, const Samples& base) {
  std::vector<double> ratios;
  for (size_t i = 0; i < of.slice_us.size(); ++i) {
    ratios.push_back(of.slice_us[i] / base.slice_us[i]);
  }
  return summarize(std::move(ratios)).median;
}

}  // namespace

double CollectiveRow::algbw_gb_s() const {
  return time_us > 0 ? static_cast<double>(bytes) / time_us / 1000 : 0;
}

double CollectiveRow::busbw_gb_s() const {
  const double n = ranks;
  const double factor = op == "allreduce" ? 2 * (n - 1) / n : op == "broadcast" ? 1 : (n - 1) / n;
  return algbw_gb_s() * factor;
}

Result<std::vector<CollectiveRow>> measure_collective(const CollectivePlan& plan, uint64_t bytes,
                                                      std::vector<Contestant>& contestants) {
  std::vector<Samples> samples(contestants.size());
  uint64_t slowest_ns = 1;
  for (size_t i = 0; i < contestants.size(); ++i) {
    SEALANE_LET(const auto slice,
                contestants[i].run({plan.op, bytes, std::max(plan.warmup, 1u), plan.check}));
    samples[i].wrong += slice.wrong;
    slowest_ns = std::max(slowest_ns, slice.times_ns.back());
  }
  // Short messages get slices as long as the others: two calls after a change of contestants would
  // show the change, cold caches and sleeping ranks, more than the calls.
  const uint64_t fitting =
      plan.lockstep ? std::min<uint64_t>(kLockstepIterations, plan.iterations / kRoundsMin)
                    : kSliceNs / slowest_ns;
  const auto per_slice = static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, kSliceCallsMax));
  const uint32_t rounds = std::max(kRoundsMin, plan.iterations / per_slice);

  SeededRandom random(bytes);
  std::vector<size_t> order(contestants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const size_t i : order) {
      SEALANE_LET(const auto slice, contestants[i].run({plan.op, bytes, per_slice, false}));
      samples[i].slice_us.push_back(mean_us(slice.times_ns));
      samples[i].all_ns.insert(samples[i].all_ns.end(), slice.times_ns.begin(),
                               slice.times_ns.end());
    }
  }

  std::vector<CollectiveRow> rows;
  for (size_t i = 0; i < contestants.size(); ++i) {
    CollectiveRow row{
        plan.op, bytes, plan.ranks, plan.transport, contestants[i].system, contestants[i].mode};
    row.time_us = summarize(samples[i].slice_us).median;
    row.p99_us = percentile_us(samples[i].all_ns, 0.99);
    row.wrong = samples[i].wrong;
    for (size_t j = 0; j < contestants.size(); ++j) {
      if (i != j) row.ratio[contestants[j].label()] = median_ratio(samples[i], samples[j]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sealane::bench
