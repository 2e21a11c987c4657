// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --stats: counts what happened, and tells it at the end as JSON to a file and as a few lines on
// stderr. docs/watching.md describes every field.
//
// Times are device time: on the emulated GPU real time divided by its dilation, elsewhere the same.
//
// Next to the figures of the whole run it tells those of what the program profiles, that is between
// cuProfilerStart and cuProfilerStop: the warm-up and the set-up are not in them.
//
// Thread-safe: relaxed atomics, exact once the threads that count have finished.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "serve/events.h"
#include "serve/live_speculator.h"
#include "serve/speculation.h"
#include "watch/counts.h"
#include "watch/stock_costs.h"

namespace sealane::serve {

class Observer;

struct StatsOptions {
  std::string path;     // of the JSON file; empty: none
  bool summary = true;  // lines on stderr
  StockCosts costs;
  double (*dilation)() = nullptr;  // of the emulated GPU; 0 or null: time is time
  std::vector<SpeculationStats> (*lanes)() =
      nullptr;  // those that seal ahead, asked when it is told
  SpeculationChoice speculation{};
  const Observer* observer = nullptr;  // whose findings are told, too
};

class Stats final : public EventSink {
 public:
  explicit Stats(StatsOptions options) : options_(std::move(options)) {}

  void handle(const Event& event) noexcept override;
  void finish() noexcept override;

  Counts counts() const;                   // of the whole run
  std::optional<Counts> profiled() const;  // of what the program profiled, if it did
  std::string json() const;
  std::string summary() const;
  std::vector<SpeculationStats> lanes() const;  // those that seal ahead, as of now
  double seconds(uint64_t real_ns) const;       // device time
  // Are times those of a real or a modelled GPU? Those of an emulated one that runs as fast as it
  // can are nobody's, and not to be put beside an estimate.
  bool is_timed() const { return options_.dilation == nullptr || options_.dilation() > 0; }
  bool has_seen_anything() const { return first_ns_.load(std::memory_order_relaxed) != 0; }

 private:
  using Counter = std::atomic<uint64_t>;
  static void add(uint64_t& word, uint64_t amount) {
    std::atomic_ref(word).fetch_add(amount, std::memory_order_relaxed);
  }

  static constexpr size_t kThreadsMax = 256;
  // CPU time of one thread of ours, as of its latest event.
  using CpuTimes = std::array<Counter, kThreadsMax>;

  static void count(Tally& tally, const Event& event);
  void count_copy(const Event& event);
  void count_call(const Event& event);
  void count_cpu(uint32_t thread);
  void note_time(const Event& event);
  void start_profile();
  void stop_profile();

  void write_counts(JsonWriter& json, const Counts& counts,
                    const std::vector<SpeculationStats>& lanes) const;
  void write_direction(JsonWriter& json, const Counts& counts, Direction direction) const;
  void write_copies(JsonWriter& json, const Counts& counts) const;
  std::string copy_line(const Counts& counts, Direction direction) const;

  const StatsOptions options_;
  mutable Counts counts_{};  // added to and read word by word, atomically
  std::array<std::atomic<const char*>, Counts::kNamesMax> names_{};
  std::array<std::atomic<const char*>, 16> notes_{};
  CpuTimes cpu_{};
  Counter first_ns_{0};
  Counter last_ns_{0};
  mutable std::mutex profile_mutex_;  // what follows, of which little happens
  std::optional<Counts> profile_start_;
  std::optional<Counts> profiled_;  // ranges that have ended
};

}  // namespace sealane::serve
