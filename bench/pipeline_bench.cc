// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What one bulk copy costs in predictors and pipeline together, MEASURED here: from the request to
// the last action, with workers and lane that answer at once, so that only the decisions are timed.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/pipeline/pipeline.h"
#include "core/predict/tournament.h"

namespace sealane {
namespace {

constexpr uint64_t kBytes = 256_KiB;

class Driver {
 public:
  explicit Driver(const char* policy) : pipeline_(options(policy), source_) {}

  void copy(const Range& host) {
    now_ += Duration(50'000);
    pipeline_.handle_ready(pipeline_.handle_copy({.host = host}, now_), now_);
    drain();
  }
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  static PipelineOptions options(const char* policy) {
    PipelineOptions made;
    made.policy = *find_policy(policy);
    return made;
  }

  // Everybody answers until nobody has anything to do.
  void drain() {
    do {
      while (const auto action = pipeline_.poll(now_)) {
        if (const auto* seal = std::get_if<Seal>(&*action)) sealing_.push_back(seal->slot);
        if (const auto* sent = std::get_if<Publish>(&*action)) published_.push_back(sent->position);
        if (const auto* pad = std::get_if<Pad>(&*action)) {
          published_.push_back(pad->position + pad->count - 1);
        }
      }
      const std::vector<SlotId> sealed = std::exchange(sealing_, {});
      const std::vector<uint64_t> landed = std::exchange(published_, {});
      for (const SlotId slot : sealed) pipeline_.handle_sealed(slot);
      for (const uint64_t position : landed) pipeline_.handle_published(position, now_);
      if (sealed.empty() && landed.empty()) break;
    } while (true);
  }

  Tournament source_;
  Pipeline pipeline_;
  Instant now_{Duration(1)};
  std::vector<SlotId> sealing_;
  std::vector<uint64_t> published_;
};

void report(benchmark::State& state, const Driver& driver) {
  const Pipeline::Stats& stats = driver.pipeline().stats();
  state.counters["hit_rate"] =
      static_cast<double>(stats.hits) / static_cast<double>(stats.requests);
  state.counters["heap_MB"] = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1e6;
}

std::vector<Range> buffers(size_t count) {
  std::vector<Range> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = {(i + 1) * 1_MiB, kBytes};
  SeededRandom random(1);
  for (size_t i = count; i > 1; --i) std::swap(made[i - 1], made[random.below(i)]);
  return made;
}

// A loop over all buffers: every copy is foreseen, sealed ahead and claimed.
void BM_Repetition(benchmark::State& state) {
  const auto all = buffers(static_cast<size_t>(state.range(0)));
  Driver driver("sealane");
  size_t at = 0;
  for (size_t i = 0; i < 3 * all.size(); ++i) driver.copy(all[at++ % all.size()]);
  for (auto _ : state) driver.copy(all[at++ % all.size()]);
  report(state, driver);
}
BENCHMARK(BM_Repetition)->Arg(100)->Arg(100'000);

// Any buffer: nothing is foreseen.
void BM_Random(benchmark::State& state) {
  const auto all = buffers(static_cast<size_t>(state.range(0)));
  Driver driver("sealane");
  SeededRandom random(2);
  for (const Range& range : all) driver.copy(range);
  for (auto _ : state) driver.copy(all[random.below(all.size())]);
  report(state, driver);
}
BENCHMARK(BM_Random)->Arg(100'000);

}  // namespace
}  // namespace sealane

BENCHMARK_MAIN();
