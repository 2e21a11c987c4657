// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast memory is digested, beside how fast it is copied, MEASURED here: one core, blocks of
// 4 MiB, out of more than any cache holds. Platform files have the ratio (guard.digest_gb_per_s).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "seal/stream_copy.h"
#include "serve/source_digest.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kBlock = 4_MiB;
constexpr uint64_t kAll = 512_MiB;

// The median of all blocks: others may disturb some.
template <typename Run>
double gb_per_s(const uint8_t* memory, const Run& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates;
  for (uint64_t at = 0; at < kAll; at += kBlock) {
    const auto began = Clock::now();
    run(memory + at);
    const std::chrono::duration<double, std::nano> took = Clock::now() - began;
    rates.push_back(static_cast<double>(kBlock) / took.count());
  }
  const auto middle = rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

void digest_and_copy(benchmark::State& state) {
  const auto memory = std::make_unique<uint8_t[]>(kAll);
  const auto to = std::make_unique<uint8_t[]>(kBlock);
  std::memset(memory.get(), 1, kAll);
  std::memset(to.get(), 1, kBlock);
  const SourceDigest digest;
  std::vector<double> digested;
  std::vector<double> copied;
  for ([[maybe_unused]] auto round : state) {
    digested.push_back(gb_per_s(memory.get(), [&](const uint8_t* block) {
      benchmark::DoNotOptimize(digest.of(block, kBlock));
    }));
    copied.push_back(gb_per_s(memory.get(), [&](const uint8_t* block) {
      stream_copy({to.get(), kBlock}, {block, kBlock});
    }));
  }
  const auto median = [](std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  const double digests = median(digested);
  const double copies = median(copied);
  state.counters["digest_GB_per_s"] = digests;
  state.counters["copy_GB_per_s"] = copies;
  state.counters["digest_of_copy"] = digests / copies;
}
BENCHMARK(digest_and_copy)->Iterations(15)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sealane::serve

BENCHMARK_MAIN();
