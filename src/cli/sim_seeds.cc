// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/sim_seeds.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace sealane::cli {
namespace {

// Small shares, so that little is run in vain behind a violation and all cores finish together.
constexpr uint64_t kShareMax = 32;

void add(sim::SimOutcome& sum, const sim::SimOutcome& share) {
  sum.seeds += share.seeds;
  sum.ops += share.ops;
  sum.counters.add(share.counters);
  sum.violations.insert(sum.violations.end(), share.violations.begin(), share.violations.end());
  if (share.vs_stock_worst > sum.vs_stock_worst) {
    sum.vs_stock_worst = share.vs_stock_worst;
    sum.vs_stock_worst_seed = share.vs_stock_worst_seed;
  }
}

class Shares {
 public:
  Shares(const sim::SimOptions& options, uint32_t threads)
      : options_(options),
        seeds_(options.last_seed - options.first_seed + 1),
        share_seeds_(std::clamp<uint64_t>(seeds_ / (uint64_t{threads} * 8), 1, kShareMax)),
        outcomes_((seeds_ + share_seeds_ - 1) / share_seeds_),
        end_(outcomes_.size()) {}

  // The work of one thread.
  void work() {
    for (;;) {
      const uint64_t share = next_++;
      if (share >= end_) return;
      outcomes_[share] = run(share);
      const bool last = !*outcomes_[share] ||
                        (options_.stop_at_violation && !(*outcomes_[share])->violations.empty());
      if (last) end_at(share + 1);
    }
  }

  Result<sim::SimOutcome> sum() const {
    sim::SimOutcome sum;
    for (uint64_t share = 0; share < end_; ++share) {
      const Result<sim::SimOutcome>& outcome = *outcomes_[share];
      if (!outcome) return outcome.error();
      add(sum, *outcome);
    }
    return sum;
  }

 private:
  Result<sim::SimOutcome> run(uint64_t share) {
    sim::SimOptions options = options_;
    options.first_seed = options_.first_seed + share * share_seeds_;
    options.last_seed =
        options.first_seed + std::min(share_seeds_ - 1, options_.last_seed - options.first_seed);
    if (options_.progress) {
      options.progress = [this](uint64_t, uint64_t) {
        const std::lock_guard lock(progress_mutex_);
        options_.progress(++done_, seeds_);
      };
    }
    return sim::run(options);
  }

  void end_at(uint64_t share) {
    uint64_t end = end_;
    while (share < end && !end_.compare_exchange_weak(end, share)) {
    }
  }

  const sim::SimOptions& options_;
  const uint64_t seeds_;
  const uint64_t share_seeds_;
  std::vector<std::optional<Result<sim::SimOutcome>>> outcomes_;  // each written by one thread
  std::atomic<uint64_t> next_ = 0;
  std::atomic<uint64_t> end_;  // shares from here on do not count
  std::mutex progress_mutex_;
  uint64_t done_ = 0;
};

}  // namespace

Result<sim::SimOutcome> run_seeds(const sim::SimOptions& options, uint32_t threads) {
  if (options.last_seed < options.first_seed) return sim::run(options);  // which says what is wrong
  Shares shares(options, threads);
  std::vector<std::jthread> others;
  try {
    for (uint32_t i = 1; i < threads; ++i) others.emplace_back([&] { shares.work(); });
  } catch (const std::system_error&) {  // no more are to be had: those there are do it all
  }
  shares.work();
  others.clear();  // joins
  return shares.sum();
}

}  // namespace sealane::cli
