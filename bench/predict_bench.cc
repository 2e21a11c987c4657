// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How good and how expensive prediction is. First a table of hit rates, per pattern and predictor
// (SIMULATED: the patterns are made from a seed), then what one copy costs (MEASURED here).
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/predict/paper.h"
#include "core/predict/testing/patterns.h"
#include "core/predict/tournament.h"
#include "report/table.h"

namespace sealane {
namespace {

constexpr uint64_t kSeed = 1;
constexpr size_t kLeeway = Tournament::kLeeway;

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

// A contestant's own rate is the share of copies it had among its guesses, over the whole pattern.
void add_pattern(report::Table& table, const patterns::Pattern& pattern) {
  const PredictLimits limits{.transfers_max = 1 << 14};
  Tournament strict(limits), tournament(limits);
  PaperPredictor paper(limits.transfers_max);
  std::vector<std::string> row{pattern.name};
  const HitMeter next_one = patterns::measure(strict, pattern, 1);
  const HitMeter near = patterns::measure(tournament, pattern, kLeeway);
  row.push_back(percent(next_one.hit_rate()));
  row.push_back(percent(near.hit_rate()));
  row.push_back(percent(1 - near.spoken_rate()));
  row.push_back(std::string(tournament.leader().empty() ? "-" : tournament.leader()));
  row.push_back(percent(patterns::measure(paper, pattern, kLeeway).hit_rate()));
  for (const Tournament::Score& score : tournament.scores()) {
    const auto copies = static_cast<double>(score.hits + score.misses);
    row.push_back(fmt::format("{:.0f}", 100 * static_cast<double>(score.hits) / copies));
  }
  table.add_row(std::move(row));
}

void print_hit_rates() {
  std::vector<report::Table::Column> columns{{"pattern", report::Align::left},
                                             {"next"},
                                             {fmt::format("in {}", kLeeway)},
                                             {"silent"},
                                             {"leader at the end", report::Align::left},
                                             {"pipellm"}};
  const Tournament contestants({.transfers_max = 128});
  for (const Tournament::Score& score : contestants.scores()) {
    columns.push_back({std::string(score.name)});
  }
  report::Table table(std::move(columns));
  for (const patterns::Pattern& pattern : patterns::all(kSeed)) add_pattern(table, pattern);
  fmt::print(
      "Hit rates in percent, SIMULATED, seed {}.\n"
      "next, in {}: bulk copies to the device that were the tournament's next guess, or among its\n"
      "next {}, once learned; silent: those for which it made no guess; pipellm: the paper's "
      "rules,\n"
      "in {}; then each contestant alone, in {}, over all copies to the device, control and\n"
      "learning included.\n\n{}\n",
      kSeed, kLeeway, kLeeway, kLeeway, kLeeway, table.text());
}

// How far the figure for two loops holds when their lengths (8-120) and paces (1-6 to 1-3) vary.
void print_two_loops() {
  constexpr uint64_t kDraws = 200;
  constexpr uint64_t kFirstSeed = 30'000;
  report::Table table(
      {{"two loops", report::Align::left}, {"worst"}, {"5 %"}, {"median"}, {"below 95"}});
  for (const bool regular : {true, false}) {
    std::vector<double> rates;
    for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kDraws; ++seed) {
      Tournament tournament({.transfers_max = 1 << 13});
      const HitMeter meter =
          patterns::measure(tournament, patterns::any_two_loops(seed, regular), kLeeway);
      if (meter.copies() > 0) rates.push_back(meter.hit_rate());
    }
    std::sort(rates.begin(), rates.end());
    const auto low = std::count_if(rates.begin(), rates.end(), [](double r) { return r < 0.95; });
    table.add_row({regular ? "in turns" : "at random", percent(rates.front()),
                   percent(rates[rates.size() / 20]), percent(rates[rates.size() / 2]),
                   fmt::format("{} of {}", low, rates.size())});
  }
  fmt::print("Two loops of random lengths and paces, in {}:\n\n{}\n", kLeeway, table.text());
}

// Shuffled, so that neither memory order nor allocation order helps the caches.
std::vector<Range> many_buffers(size_t count) {
  return patterns::scattered(count, 1_MiB, patterns::kWeightsBase, kSeed);
}

template <typename Source>
void run_loop(benchmark::State& state, Source& source, const std::vector<Range>& buffers,
              size_t controls) {
  std::array<Guess, 8> next;
  SeededRandom random(kSeed);
  size_t at = 0;
  const auto one = [&](const Range& range) {
    source.observe({Direction::to_device, range});
    benchmark::DoNotOptimize(source.predict(next));
  };
  const auto step = [&] {
    for (size_t i = 0; i < controls; ++i) one(patterns::fresh_control(random));
    one(buffers[at]);
    at = at + 1 == buffers.size() ? 0 : at + 1;
  };
  for (size_t i = 0; i < 3 * buffers.size(); ++i) step();
  for (auto _ : state) step();
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * (1 + controls)));
  state.SetLabel(std::string(source.leader()));
  state.counters["heap_MB"] = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1e6;
}

// One copy: observe, then the next eight guesses, with so many distinct buffers known.
void BM_Tournament(benchmark::State& state) {
  Tournament tournament;
  run_loop(state, tournament, many_buffers(static_cast<size_t>(state.range(0))), 0);
}
BENCHMARK(BM_Tournament)->Arg(100)->Arg(10'000)->Arg(100'000);

// The same with three control copies that never come again around every copy: per step of four.
void BM_TournamentWithControl(benchmark::State& state) {
  Tournament tournament;
  run_loop(state, tournament, many_buffers(static_cast<size_t>(state.range(0))), 3);
}
BENCHMARK(BM_TournamentWithControl)->Arg(100)->Arg(10'000);

void BM_Paper(benchmark::State& state) {
  PaperPredictor paper;
  run_loop(state, paper, many_buffers(static_cast<size_t>(state.range(0))), 0);
}
BENCHMARK(BM_Paper)->Arg(100'000);

}  // namespace
}  // namespace sealane

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  sealane::print_hit_rates();
  sealane::print_two_loops();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
