// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a program's thread pays for the request of a copy that was sealed ahead, MEASURED here: the
// guard is asked whether the source was written, the slots are claimed. Its thread has slept
// before, so that nothing of that is in its core's caches. The figure is us_per_MiB, the median of
// several repetitions, each with memory of its own.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/random.h"
#include "core/lane/iv_law.h"
#include "serve/live_speculator.h"

namespace sealane::serve {
namespace {

constexpr size_t kBuffers = 4;
constexpr int kRepetitions = 7;

// A driver with one channel that copies the same buffers again and again.
class Driver {
 public:
  Driver(uint64_t bytes, bool page_guards) : bytes_(bytes) {
    SystemRandom random;
    schedule_ = SplitGcm::make(Key::random(random).secret());
    random.fill(law_.mask);
    for (uint8_t*& buffer : buffers_) {
      buffer = static_cast<uint8_t*>(
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      std::memset(buffer, 1, bytes);
      host_.add(range(buffer), {.ours = true});
    }
    LiveSpeculatorOptions options;
    options.policy = *find_policy("speculate");
    options.page_guards = page_guards;
    ahead_ = new LiveSpeculator(pool_, host_, options);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() {
    ahead_->stop();
    for (uint8_t* buffer : buffers_) {
      ahead_->freed(range(buffer));
      munmap(buffer, bytes_);
    }
  }

  bool able() const { return schedule_ != nullptr; }
  uint64_t hits() const { return ahead_->stats().pipeline.hits; }

  // Returns what the request took.
  Duration copy() {
    uint8_t* const buffer = buffers_[next_++ % kBuffers];
    do {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      ahead_->look();
    } while (ahead_->sealing() || ahead_->deadline());
    const Instant began = SteadyClock().now();
    CopyCall call;
    call.host = range(buffer);
    call.memory = HostKind::pinned;
    ahead_->check_guards(call.host);
    const bool known = ahead_->handle_asked(next_, call, HostSide::in_place, began);
    const Duration took = SteadyClock().now() - began;
    if (known) carry(next_, buffer);
    return took;
  }

 private:
  Range range(const uint8_t* buffer) const { return {reinterpret_cast<uint64_t>(buffer), bytes_}; }

  void carry(CopyId copy, const uint8_t* buffer) {
    ahead_->handle_turn(copy, SteadyClock().now());
    for (uint64_t carried = 0; carried < bytes_;) {
      const auto turn =
          ahead_->await_turn() ? ahead_->next_turn(SteadyClock().now()) : std::nullopt;
      if (!turn || !ahead_->begin()) continue;
      for (uint64_t i = 0; i < turn->pads; ++i) seal(buffer, 1);
      for (uint64_t at = 0; at < turn->bytes; at += kMessageBytes) {
        seal(buffer + turn->offset + at, std::min(kMessageBytes, turn->bytes - at));
      }
      carried += turn->bytes;
      ahead_->end(true);
    }
    ahead_->handle_over(copy, true, SteadyClock().now());
  }
  void seal(const uint8_t* from, uint64_t bytes) {
    const auto taken = ahead_->take(1, schedule_, law_.iv(position_++), from, bytes);
    if (taken.ours) ahead_->give(taken, bytes);
  }

  const uint64_t bytes_;
  WorkerPool& pool_ = *new WorkerPool(1);  // its thread never ends
  RangeMap<HostBlock>& host_ = *new RangeMap<HostBlock>;
  std::shared_ptr<const SplitGcm> schedule_;
  IvLaw law_;
  uint64_t position_ = 0;
  size_t next_ = 0;
  uint8_t* buffers_[kBuffers] = {};
  LiveSpeculator* ahead_ = nullptr;  // never deleted, as in the runtime
};

void claim(benchmark::State& state, bool page_guards) {
  const auto bytes = static_cast<uint64_t>(state.range(0)) * 1_MiB;
  Driver driver(bytes, page_guards);
  if (!driver.able()) return state.SkipWithError("no engine that seals in parts on this CPU");
  for (size_t i = 0; i < 8 * kBuffers; ++i) driver.copy();
  const uint64_t hits = driver.hits();
  Duration all{0};
  for (auto _ : state) {
    const Duration took = driver.copy();
    all += took;
    state.SetIterationTime(std::chrono::duration<double>(took).count());
  }
  const auto copies = static_cast<double>(state.iterations());
  state.counters["us_per_MiB"] = std::chrono::duration<double, std::micro>(all).count() / copies /
                                 static_cast<double>(state.range(0));
  state.counters["hit_rate"] = static_cast<double>(driver.hits() - hits) / copies;
}

BENCHMARK_CAPTURE(claim, page_guards, true)
    ->RangeMultiplier(4)
    ->Range(1, 16)
    ->UseManualTime()
    ->Iterations(200)
    ->Repetitions(kRepetitions)
    ->ReportAggregatesOnly();
BENCHMARK_CAPTURE(claim, digests, false)
    ->RangeMultiplier(4)
    ->Range(1, 16)
    ->UseManualTime()
    ->Iterations(100)
    ->Repetitions(kRepetitions)
    ->ReportAggregatesOnly();

}  // namespace
}  // namespace sealane::serve

BENCHMARK_MAIN();
