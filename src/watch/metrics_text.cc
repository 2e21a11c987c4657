// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every metric, family by family. A help text stands alone and is what docs/watching.md says, to
// the letter (a test prints the table that belongs there).

#include <algorithm>

#include "base/text.h"
#include "watch/exposition.h"
#include "watch/metrics.h"

namespace sealane::serve {
namespace {

class Page {
 public:
  Page(const Stats& stats, const MetricsOf& process)
      : stats_(stats),
        counts_(stats.counts()),
        lanes_(stats.lanes()),
        out_({{"pid", process.pid}, {"command", process.command}}) {
    lanes_.resize(std::min(lanes_.size(), Counts::kLanesMax));
  }

  std::string write(const MetricsOf& process, bool running) {
    of_process(process, running);
    of_copies();
    of_messages();
    of_waits_and_threads(process);
    of_lanes();
    of_predictors();
    return out_.text();
  }

 private:
  void one(const char* name, Exposition::Type type, const char* help, auto value) {
    out_.family(name, type, help);
    out_.sample({}, value);
  }

  // value(direction) for both.
  template <typename Value>
  void by_direction(const char* name, const char* help, const Value& value) {
    out_.family(name, Exposition::counter, help);
    for (const Direction direction : kDirections) {
      out_.sample({{"direction", to_string(direction)}}, value(direction));
    }
  }

  // value(direction, kind) for all kinds, whose names are `label`'s values.
  template <typename Kind, typename Value>
  void by_kind(const char* name, const char* help, const char* label, size_t kinds,
               const Value& value) {
    out_.family(name, Exposition::counter, help);
    for (const Direction direction : kDirections) {
      for (size_t i = 0; i < kinds; ++i) {
        const auto kind = static_cast<Kind>(i);
        out_.sample({{"direction", to_string(direction)}, {label, to_string(kind)}},
                    value(direction, kind));
      }
    }
  }

  // value(counts, lane) for every lane that seals ahead.
  template <typename Value>
  void by_lane(const char* name, Exposition::Type type, const char* help, const Value& value) {
    out_.family(name, type, help);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      out_.sample({{"lane", concat(lanes_[i].lane)}, {"device", concat(lanes_[i].device)}},
                  uint64_t{value(counts_.lanes[i], lanes_[i])});
    }
  }

  void of_process(const MetricsOf& process, bool running);
  void of_copies();
  void of_messages();
  void of_waits_and_threads(const MetricsOf& process);
  void of_lanes();
  void of_predictors();

  const Stats& stats_;
  const Counts counts_;
  std::vector<SpeculationStats> lanes_;
  Exposition out_;
};

void Page::of_process(const MetricsOf& process, bool running) {
  one("sealane_up", Exposition::gauge, "1 while the process runs, 0 once it has ended.",
      uint64_t{running});
  one("sealane_start_time_seconds", Exposition::gauge,
      "When the process began to use the GPU, in Unix time.", process.started_s);
}

void Page::of_copies() {
  by_kind<Route>("sealane_copies_total", "Copies between host and device, by how they travelled.",
                 "route", kRoutes, [&](Direction direction, Route route) {
                   return counts_.copies_by(direction, route).count;
                 });
  by_kind<Route>(
      "sealane_copy_bytes_total", "Bytes of copies between host and device.", "route", kRoutes,
      [&](Direction direction, Route route) { return counts_.copies_by(direction, route).bytes; });
  by_direction(
      "sealane_copy_blocked_seconds_total", "Time callers spent in copy calls.",
      [&](Direction direction) { return stats_.seconds(counts_.copies_of(direction).ns); });
  by_direction("sealane_copy_blocked_stock_estimate_seconds_total",
               "What callers would have waited at least in CC mode as shipped.",
               [&](Direction direction) {
                 return static_cast<double>(counts_.stock_ns[static_cast<size_t>(direction)]) / 1e9;
               });
  by_direction("sealane_copy_errors_total", "Copies that failed.",
               [&](Direction direction) { return counts_.copies_of(direction).failed; });
  by_direction("sealane_lane_busy_seconds_total", "Time copy threads spent carrying copies.",
               [&](Direction direction) {
                 return stats_.seconds(counts_.carried[static_cast<size_t>(direction)].ns);
               });
}

void Page::of_messages() {
  const auto tally = [&](Direction direction, Answer answer) -> const Tally& {
    return counts_.messages[static_cast<size_t>(direction)][static_cast<size_t>(answer)];
  };
  by_kind<Answer>(
      "sealane_messages_total", "AEAD messages of the driver, by who answered.", "answer", kAnswers,
      [&](Direction direction, Answer answer) { return tally(direction, answer).count; });
  by_kind<Answer>(
      "sealane_message_bytes_total", "Bytes of AEAD messages of the driver.", "answer", kAnswers,
      [&](Direction direction, Answer answer) { return tally(direction, answer).bytes; });
  by_kind<Answer>("sealane_message_busy_seconds_total",
                  "Time the driver's threads spent on AEAD messages.", "answer", kAnswers,
                  [&](Direction direction, Answer answer) {
                    return stats_.seconds(tally(direction, answer).ns);
                  });
}

void Page::of_waits_and_threads(const MetricsOf& process) {
  one("sealane_waits_total", Exposition::counter, "Synchronising calls.", counts_.waits.count);
  one("sealane_wait_blocked_seconds_total", Exposition::counter,
      "Time callers spent in synchronising calls.", stats_.seconds(counts_.waits.ns));
  one("sealane_workers", Exposition::gauge, "Threads that seal and open.",
      uint64_t{process.workers});
  const std::pair<const char*, const Tally*> work[] = {
      {"part", &counts_.parts}, {"requested", &counts_.sealed[0]}, {"ahead", &counts_.sealed[1]}};
  out_.family("sealane_worker_bytes_total", Exposition::counter, "Bytes workers sealed or opened.");
  for (const auto& [name, tally] : work) out_.sample({{"work", name}}, tally->bytes);
  out_.family("sealane_worker_busy_seconds_total", Exposition::counter,
              "Time workers spent sealing and opening.");
  for (const auto& [name, tally] : work) out_.sample({{"work", name}}, stats_.seconds(tally->ns));
  one("sealane_cpu_seconds_total", Exposition::counter, "CPU time of workers and copy threads.",
      static_cast<double>(counts_.cpu_ns) / 1e9);
  one("sealane_keys_total", Exposition::counter, "Keys seen: channels and rotations.",
      counts_.keys);
}

void Page::of_lanes() {
  using Lane = const LaneCounts&;
  using Now = const SpeculationStats&;
  by_lane("sealane_speculation_requests_total", Exposition::counter,
          "Bulk copies to the device on lanes that seal ahead.",
          [](Lane lane, Now) { return lane.pipeline.requests; });
  by_lane("sealane_speculation_hits_total", Exposition::counter,
          "Bulk copies that were foreseen and unchanged.",
          [](Lane lane, Now) { return lane.pipeline.hits; });
  by_lane("sealane_speculation_misses_total", Exposition::counter,
          "Bulk copies that were not foreseen, or had changed.",
          [](Lane lane, Now) { return lane.misses(); });
  by_lane("sealane_speculation_guesses_total", Exposition::counter,
          "Copies that were planned before they were asked for.",
          [](Lane lane, Now) { return lane.pipeline.guesses; });
  by_lane("sealane_speculation_messages_total", Exposition::counter, "Messages of bulk copies.",
          [](Lane lane, Now) { return lane.pipeline.messages; });
  by_lane("sealane_speculation_messages_ahead_total", Exposition::counter,
          "Messages of bulk copies sealed before they were asked for.",
          [](Lane lane, Now) { return lane.messages_ahead; });
  by_lane("sealane_speculation_pads_total", Exposition::counter,
          "Messages sent that carry nothing.", [](Lane lane, Now) { return lane.pipeline.padded; });
  by_lane("sealane_speculation_holds_total", Exposition::counter,
          "Times a copy waited for the one expected before it.",
          [](Lane lane, Now) { return lane.pipeline.held; });
  out_.family("sealane_speculation_voided_slots_total", Exposition::counter,
              "Slots wiped without being used, by why.");
  for (size_t i = 0; i < lanes_.size(); ++i) {
    for (size_t why = 0; why < kVoidReasons; ++why) {
      out_.sample({{"lane", concat(lanes_[i].lane)},
                   {"device", concat(lanes_[i].device)},
                   {"reason", to_string(static_cast<VoidReason>(why))}},
                  counts_.lanes[i].pipeline.voided_for[why]);
    }
  }
  by_lane("sealane_speculation_slot_bytes", Exposition::gauge, "Bytes in slots now.",
          [](Lane, Now now) { return now.slot_bytes; });
  by_lane("sealane_speculation_slot_peak_bytes", Exposition::gauge,
          "The most bytes there ever were in slots.",
          [](Lane, Now now) { return now.slot_bytes_peak; });
}

// One sample for each predictor of each lane.
void Page::of_predictors() {
  const auto each = [&](const char* name, Exposition::Type type, const char* help, auto value) {
    out_.family(name, type, help);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      for (const PredictorScore& score : lanes_[i].predictors) {
        out_.sample({{"lane", concat(lanes_[i].lane)},
                     {"device", concat(lanes_[i].device)},
                     {"predictor", score.name}},
                    uint64_t{value(lanes_[i], score)});
      }
    }
  };
  each("sealane_predictor_leads", Exposition::gauge, "1 for the predictor whose guesses are used.",
       [](const SpeculationStats& lane, const PredictorScore& score) {
         return uint64_t{lane.leader == score.name};
       });
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].predictors.empty() || lanes_[i].leader.empty()) continue;  // the paper's rules
    out_.sample({{"lane", concat(lanes_[i].lane)},
                 {"device", concat(lanes_[i].device)},
                 {"predictor", lanes_[i].leader}},
                uint64_t{1});
  }
  each("sealane_predictor_hits_total", Exposition::counter,
       "Copies that were among the next four guesses of this predictor.",
       [](const SpeculationStats&, const PredictorScore& score) { return score.hits; });
  each("sealane_predictor_misses_total", Exposition::counter,
       "Copies that were not among its next four guesses.",
       [](const SpeculationStats&, const PredictorScore& score) { return score.misses; });
}

}  // namespace

std::string metrics_text(const Stats& stats, const MetricsOf& process, bool running) {
  return Page(stats, process).write(process, running);
}

}  // namespace sealane::serve
