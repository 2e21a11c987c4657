// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/watch.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/output_name.h"
#include "base/text.h"
#include "base/time.h"
#include "seal/split_gcm.h"
#include "serve/process.h"
#include "watch/chrome_trace.h"
#include "watch/last_signals.h"
#include "watch/metrics.h"
#include "watch/observer.h"
#include "watch/recorder.h"
#include "watch/stats.h"

namespace sealane::serve {
namespace {

const SteadyClock& the_clock() {
  static const SteadyClock& clock = *new SteadyClock;
  return clock;
}

// Nothing if the variable is unset or empty.
std::string path_in(Lookup lookup, const char* name) {
  const char* value = lookup(name);
  return value != nullptr ? output_path(value) : std::string();
}

bool is_set(Lookup lookup, const char* name) {
  const char* value = lookup(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

StockCosts costs_in(Lookup lookup) {
  const char* words = lookup("SEALANE_COSTS");
  return read_stock_costs(words != nullptr ? words : lookup("SEALANE_EMU_MODEL"));
}

// Of our engine on this core, from a few messages' worth of its own memory.
double measure_engine() {
  constexpr std::array<uint8_t, Key::kBytes> kKey{};
  const auto engine = SplitGcm::make(kKey);
  if (engine == nullptr) return 0;
  std::vector<uint8_t> from(1_MiB, 1);
  std::vector<uint8_t> to(1_MiB);
  double best_ns = 0;
  for (int round = 0; round < 8; ++round) {
    const Instant begin = the_clock().now();
    engine->seal_part(Iv{}, 0, from.data(), to.data(), from.size());
    const auto ns = static_cast<double>((the_clock().now() - begin).count());
    if (best_ns == 0 || ns < best_ns) best_ns = ns;
  }
  return static_cast<double>(from.size()) / std::max(1.0, best_ns);
}

double unix_time_s() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::vector<SpeculationStats> speculation_now() { return process().speculators.stats(); }

// One who counts for both who tell, or null.
const Stats* start_counting(Lookup lookup, const WatchContext& context, const Observer* observer) {
  const std::string stats = path_in(lookup, "SEALANE_STATS");
  const std::string metrics = path_in(lookup, "SEALANE_METRICS");
  if (stats.empty() && metrics.empty()) return nullptr;
  auto& counts = *new Stats({stats, !stats.empty(), costs_in(lookup), context.dilation,
                             &speculation_now, context.speculation, observer});
  process().sinks.add(counts);
  if (metrics.empty()) return &counts;
  auto& told = *new Metrics(counts, metrics_path(metrics),
                            {concat(::getpid()), printable(program_invocation_short_name, 64),
                             unix_time_s(), context.workers});
  process().sinks.add(told);
  told.start(context.metrics_every);
  return &counts;
}

std::string speculation_by_default(unsigned workers) {
  return describe(choose_speculation(Options(), workers));
}

}  // namespace

bool is_watching_asked(Lookup lookup) {
  return is_set(lookup, "SEALANE_OBSERVE") || is_set(lookup, "SEALANE_STATS") ||
         is_set(lookup, "SEALANE_METRICS") || is_set(lookup, "SEALANE_TRACE") ||
         is_set(lookup, "SEALANE_RECORD");
}

Watchers start_watching(Lookup lookup, const WatchContext& context) {
  Observer* observer = nullptr;
  if (is_set(lookup, "SEALANE_OBSERVE")) {
    observer = new Observer({costs_in(lookup), context.dilation, context.workers, &measure_engine,
                             &speculation_by_default});
  }
  const Stats* const stats = start_counting(lookup, context, observer);
  if (const std::string path = path_in(lookup, "SEALANE_TRACE"); !path.empty()) {
    process().sinks.add(*new ChromeTrace(path, the_clock().now(), context.dilation));
  }
  if (const std::string path = path_in(lookup, "SEALANE_RECORD"); !path.empty()) {
    process().sinks.add(*new Recorder({path, &the_clock(), context.dilation, true}));
  }
  if (observer != nullptr) process().sinks.add(*observer);
  watch_for_last_signals();
  return {stats, observer};
}

StatsOptions stats_for_later(Lookup lookup, const WatchContext& context, const Observer* observer) {
  return {{},      false, costs_in(lookup), context.dilation, &speculation_now, context.speculation,
          observer};
}

}  // namespace sealane::serve
