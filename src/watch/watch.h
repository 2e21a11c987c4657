// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which sinks were asked for (SEALANE_OBSERVE, SEALANE_STATS, SEALANE_METRICS, SEALANE_TRACE,
// SEALANE_RECORD; see docs/watching.md), made and added. They live until the process is gone.
#pragma once

#include "base/time.h"
#include "serve/options.h"
#include "serve/speculation.h"
#include "watch/stats.h"

namespace sealane::serve {

bool is_watching_asked(Lookup lookup);

struct WatchContext {
  unsigned workers = 1;  // that seal, or would
  Duration metrics_every = std::chrono::seconds(5);
  double (*dilation)() = nullptr;  // of the emulated GPU; null on a real one
  SpeculationChoice speculation{};
};
// Those who can be asked for what they have seen so far; null: nobody was asked for.
struct Watchers {
  const Stats* stats = nullptr;
  const Observer* observer = nullptr;
};
Watchers start_watching(Lookup lookup, const WatchContext& context);

// How to count for somebody who comes later.
StatsOptions stats_for_later(Lookup lookup, const WatchContext& context, const Observer* observer);

}  // namespace sealane::serve
