// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --stats: counts what happened, and tells it at the end as JSON to a file and as a few lines on
// stderr. docs/watching.md describes every field.
//
// Times are device time: on the emulated GPU real time divided by its dilation, elsewhere the same.
//
// Thread-safe: relaxed atomics, exact once the threads that count have finished.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/json_writer.h"
#include "live/serve/events.h"
#include "live/serve/watch/stock_costs.h"

namespace sealane::serve {

constexpr size_t kRoutes = static_cast<size_t>(Route::passed_aside) + 1;
constexpr size_t kAnswers = static_cast<size_t>(Answer::deferred) + 1;
std::string_view to_string(Route route);
std::string_view to_string(Answer answer);
std::string_view to_string(Direction direction);

struct StatsOptions {
  std::string path;     // of the JSON file; empty: none
  bool summary = true;  // lines on stderr
  StockCosts costs;
  double (*dilation)() = nullptr;  // of the emulated GPU; 0 or null: time is time
};

class Stats final : public EventSink {
 public:
  explicit Stats(StatsOptions options) : options_(std::move(options)) {}

  void handle(const Event& event) noexcept override;
  void finish() noexcept override;

  std::string json() const;
  std::string summary() const;
  bool has_seen_anything() const { return first_ns_.load(std::memory_order_relaxed) != 0; }

 private:
  using Counter = std::atomic<uint64_t>;
  static void add(Counter& counter, uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }

  // Everything that can be said of a group of copies, messages, waits.
  struct Tally {
    Counter count{0};
    Counter bytes{0};
    Counter ns{0};
    Counter failed{0};
  };
  struct Sum {
    uint64_t count = 0;
    uint64_t bytes = 0;
    uint64_t ns = 0;
    uint64_t failed = 0;
    void add(const Tally& tally);
  };
  struct NamedCalls {
    std::atomic<const char*> name{nullptr};
    Counter count{0};
  };
  static constexpr size_t kNamesMax = 64;
  static constexpr size_t kThreadsMax = 256;
  // CPU time of one thread of ours, as of its latest event.
  using CpuTimes = std::array<Counter, kThreadsMax>;

  void count_copy(const Event& event);
  void count_name(const char* name);
  void count_cpu(uint32_t thread);
  void note_time(const Event& event);

  double seconds(double real_ns) const;
  Sum copies_of(Direction direction) const;
  Sum carried_of(Direction direction) const;
  double hit_rate() const;
  double own_cpu_seconds() const;
  void write_direction(JsonWriter& json, Direction direction) const;
  void write_copies(JsonWriter& json) const;
  std::string copy_line(Direction direction) const;

  const StatsOptions options_;
  // By direction, asynchronous, pinned, route.
  Tally copies_[2][2][2][kRoutes];
  Tally messages_[2][kAnswers];
  Tally parts_;
  Tally carried_[2];
  Tally waits_;
  Counter stock_ns_[2] = {};  // estimated, see StockCosts
  Counter keys_{0};
  NamedCalls calls_[kNamesMax];
  std::array<std::atomic<const char*>, 16> notes_{};
  CpuTimes cpu_{};
  Counter first_ns_{0};
  Counter last_ns_{0};
};

}  // namespace sealane::serve
