// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Timelines for people: the end of a run as a Chrome trace (opens in Perfetto and
// chrome://tracing), or as a few hundred bars for a page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "estimate/serving.h"

namespace sealane::estimate {

// "worker 3", "kernels", "link to device".
std::string track_name(const sim::Span& span);

// One process per policy, one thread per track.
std::string chrome_trace(std::span<const ServingRow> rows);

// The last `window` of a timeline, from 0 on. Neighbours of one track that do the same with hardly
// a gap between them become one bar, so that the number of bars is bounded by what an eye can see.
struct Bar {
  std::string track;
  std::string what;
  double from_ms = 0;
  double until_ms = 0;
};
std::vector<Bar> last_bars(const std::vector<sim::Span>& timeline, Duration window);

}  // namespace sealane::estimate
