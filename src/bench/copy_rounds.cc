// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/copy_rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "base/try.h"

namespace sealane::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The same bytes, whatever happened to them on their way.
Status check_hash(const std::vector<CopyRow>& rows, const CopyRow& row) {
  for (const CopyRow& other : rows) {
    if (other.what.example != row.what.example || other.runs.empty()) continue;
    if (other.runs.front().hash == row.runs.back().hash) return {};
    return internal_error(fmt::format("{} computed something else under {} than under {}",
                                      row.what.name(), row.policy->name, other.policy->name));
  }
  return {};
}

Status run_round(std::vector<CopyRow>& rows, const CopySetting& setting, SeededRandom& random,
                 const std::function<void(const CopyRow&)>& show) {
  std::vector<CopyRow*> order;
  order.reserve(rows.size());
  for (CopyRow& row : rows) order.push_back(&row);
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = std::find_if(begin, order.end(),
                                  [&](const CopyRow* row) { return row->what != (*begin)->what; });
    for (auto at = end; at - begin > 1; --at) {
      std::swap(*(at - 1),
                *(begin + static_cast<ptrdiff_t>(random.below(static_cast<uint64_t>(at - begin)))));
    }
    for (; begin != end; ++begin) {
      CopyRow& row = **begin;
      show(row);
      CopySetting here = setting;
      here.workers = row.what.workers;
      auto run = run_copy_example(*row.what.example, *row.policy, here);
      // A machine that was busy for a moment gets a second chance.
      if (run && !run->in_time()) run = run_copy_example(*row.what.example, *row.policy, here);
      if (!run) return run.error();
      row.runs.push_back(*std::move(run));
      SEALANE_TRY(check_hash(rows, row));
    }
  }
  return {};
}

std::string duration(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

Result<size_t> run_rounds(std::vector<CopyRow>& rows, const CopySetting& setting,
                          const Rounds& rounds,
                          const std::function<void(const std::string&)>& show) {
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  SeededRandom random(1);
  size_t done = 0;
  size_t runs = 0;
  const auto another = [&] {
    if (done < rounds.least) return true;
    return elapsed() * static_cast<double>(done + 1) / static_cast<double>(done) < rounds.seconds;
  };
  while (another()) {
    const Status ran = run_round(rows, setting, random, [&](const CopyRow& row) {
      const auto due = static_cast<double>(rows.size() * std::max(rounds.least, done + 1));
      const double left = runs == 0 ? 0 : elapsed() * (due / static_cast<double>(runs) - 1);
      show(fmt::format("round {}: {} under {}{}", done + 1, row.what.name(), row.policy->name,
                       runs == 0 ? "" : "; about " + duration(left) + " left"));
      ++runs;
    });
    if (!ran) return ran.error();
    ++done;
  }
  return done;
}

}  // namespace sealane::bench
