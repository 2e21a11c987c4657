// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace sealane::estimate {
namespace {

constexpr int kBarsPerTrack = 300;

double ms(Duration time) { return static_cast<double>(time.count()) / 1e6; }

// Tracks in the order a copy meets them.
int place(sim::Track track) {
  switch (track) {
    case sim::Track::thread:
      return 0;
    case sim::Track::worker:
      return 100;
    case sim::Track::driver:
      return 1'000;
    case sim::Track::lane:
      return 1'100;
    case sim::Track::link_to_device:
      return 1'200;
    case sim::Track::link_to_host:
      return 1'300;
    case sim::Track::stream:
      return 1'400;
  }
  return 0;
}

}  // namespace

std::string track_name(const sim::Span& span) {
  switch (span.track) {
    case sim::Track::thread:
      return "program";
    case sim::Track::worker:
      return fmt::format("worker {}", span.index + 1);
    case sim::Track::driver:
      return "driver's copy";
    case sim::Track::lane:
      return fmt::format("lane {}", span.index + 1);
    case sim::Track::link_to_device:
      return "link to device";
    case sim::Track::link_to_host:
      return "link to host";
    case sim::Track::stream:
      return fmt::format("kernels, stream {}", span.index + 1);
  }
  return "";
}

std::string chrome_trace(std::span<const ServingRow> rows) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  auto to = std::back_inserter(out);
  bool first = true;
  const auto separate = [&] { out += std::exchange(first, false) ? "" : ",\n"; };
  for (size_t process = 0; process < rows.size(); ++process) {
    separate();
    fmt::format_to(to, R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})",
                   process + 1, rows[process].policy);
    std::map<int, std::string> tracks;
    for (const sim::Span& span : rows[process].timeline) {
      const int track = place(span.track) + static_cast<int>(span.index);
      tracks.emplace(track, track_name(span));
      separate();
      fmt::format_to(to,
                     R"({{"ph":"X","pid":{},"tid":{},"name":"{}","ts":{:.3f},"dur":{:.3f},)"
                     R"("args":{{"bytes":{}}}}})",
                     process + 1, track, span.what, ms(span.from.time_since_epoch()) * 1e3,
                     ms(span.until - span.from) * 1e3, span.bytes);
    }
    for (const auto& [track, name] : tracks) {
      separate();
      fmt::format_to(
          to, R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
          process + 1, track, name);
      separate();
      fmt::format_to(
          to,
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
          process + 1, track, track);
    }
  }
  out += "\n]}\n";
  return out;
}

std::vector<Bar> last_bars(const std::vector<sim::Span>& timeline, Duration window) {
  Instant end{};
  for (const sim::Span& span : timeline) end = std::max(end, span.until);
  const Instant begin = end - window;
  std::map<int, std::vector<sim::Span>> tracks;
  for (const sim::Span& span : timeline) {
    if (span.until <= begin) continue;
    tracks[place(span.track) + static_cast<int>(span.index)].push_back(span);
  }
  std::vector<Bar> bars;
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end(),
              [](const sim::Span& a, const sim::Span& b) { return a.from < b.from; });
    const double gap = ms(window) / kBarsPerTrack;
    const size_t before = bars.size();
    for (const sim::Span& span : spans) {
      const double from = std::max(0.0, ms(span.from - begin));
      const double until = ms(span.until - begin);
      const bool joins = bars.size() > before && bars.back().what == span.what &&
                         from - bars.back().until_ms < gap;
      if (joins) {
        bars.back().until_ms = std::max(bars.back().until_ms, until);
      } else {
        bars.push_back({track_name(span), span.what, from, until});
      }
    }
  }
  return bars;
}

}  // namespace sealane::estimate
