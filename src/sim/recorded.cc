// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/recorded.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/random.h"
#include "core/predict/paper.h"
#include "core/predict/tournament.h"

namespace sealane::sim {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// One source of guesses that sees what a lane would: copies, and host memory that comes and goes.
class Watcher {
 public:
  explicit Watcher(GuessSource& source) : source_(source) {}

  void see(const workload::Action& action) {
    if (const auto* made = std::get_if<workload::AllocateHost>(&action)) {
      allocated_[made->range.address] = made->range;
      source_.allow(made->range);
    } else if (const auto* freed = std::get_if<workload::FreeHost>(&action)) {
      const auto found = allocated_.find(freed->address);
      if (found == allocated_.end()) return;
      source_.forget(found->second);
      allocated_.erase(found);
    } else if (const auto* copy = std::get_if<workload::Copy>(&action)) {
      see_copy(*copy);
    }
  }

  double rate() const { return share(hits_, bulk_); }

 private:
  void see_copy(const workload::Copy& copy) {
    const bool bulk =
        copy.direction == Direction::to_device && copy.host.bytes >= PaperPredictor::kSwapBytesMin;
    if (bulk) {
      std::array<Guess, Tournament::kLeeway> next;
      const size_t count = source_.predict(next);
      bulk_ += 1;
      hits_ += std::any_of(next.begin(), next.begin() + static_cast<ptrdiff_t>(count),
                           [&](const Guess& guess) { return guess.host == copy.host; })
                   ? 1
                   : 0;
    }
    source_.observe({copy.direction, copy.host});
  }

  GuessSource& source_;
  std::map<uint64_t, Range> allocated_;
  uint64_t bulk_ = 0;
  uint64_t hits_ = 0;
};

Foreseen foreseen(const workload::Program& program, const Platform& platform,
                  std::string_view policy) {
  Setup setup;
  setup.platform = platform;
  setup.policy = *find_policy(policy);
  const Counters counters = simulate(program, setup).counters;
  return {.copies = counters.bulk_requests,
          .hit_rate = share(counters.bulk_hits, counters.bulk_requests),
          .ready_rate = share(counters.messages_ready, counters.messages),
          .silent = counters.bulk_hits + counters.messages_ready + counters.voided == 0};
}

}  // namespace

Case make_recorded_case(const workload::Program& program, uint64_t seed, const Platform& platform) {
  Case made;
  made.program = program;
  made.setup.platform = platform;
  made.setup.seed = seed;
  if (seed == 0) return made;
  SeededRandom random(seed);
  const auto sometimes = [&](double most) { return random.chance(0.5) ? random.real() * most : 0; };
  Faults& faults = made.setup.faults;
  faults.driver_message = sometimes(0.1);
  faults.rotation = sometimes(0.02);
  faults.worker_stall = sometimes(0.02);
  faults.apart = sometimes(0.3);
  if (random.chance(0.2)) faults.tamper = 0.002;
  if (random.chance(0.2)) faults.refused_step = 0.02;
  made.setup.workers = static_cast<uint32_t>(random.between(1, 8));
  return made;
}

std::optional<TimedPart> find_timed_part(const workload::Program& program) {
  struct Watch {                             // an event
    std::optional<workload::EventId> after;  // made just before
    size_t recorded = 0;                     // the operation behind its only record
    uint32_t records = 0;
  };
  std::map<workload::EventId, Watch> events;
  std::optional<workload::EventId> made;
  std::optional<TimedPart> part;
  for (size_t i = 0; i < program.size(); ++i) {
    const workload::Action& action = program[i].action;
    if (const auto* create = std::get_if<workload::CreateEvent>(&action)) {
      events[create->event] = {.after = std::exchange(made, create->event)};
    } else if (const auto* record = std::get_if<workload::RecordEvent>(&action)) {
      Watch& watch = events[record->event];
      watch.recorded = i;
      ++watch.records;
    } else if (const auto* sync = std::get_if<workload::SyncEvent>(&action)) {
      const Watch& end = events[sync->event];
      if (end.records != 1 || !end.after) continue;
      const Watch& begin = events[*end.after];
      if (begin.records == 1 && begin.recorded < end.recorded) part = {begin.recorded, i + 1};
    }
  }
  return part;
}

Duration simulate_part(const workload::Program& program, const TimedPart& part,
                       const Setup& setup) {
  const auto until = [&](size_t end) {
    const auto last = program.begin() + static_cast<ptrdiff_t>(end);
    return simulate(workload::Program(program.begin(), last), setup).elapsed;
  };
  return until(part.end) - until(part.begin);
}

RecordedHits measure_hits(const workload::Program& program, const Platform& platform) {
  Tournament tournament;
  PaperPredictor paper;
  Watcher ours(tournament);
  Watcher theirs(paper);
  for (const workload::Operation& operation : program) {
    ours.see(operation.action);
    theirs.see(operation.action);
  }
  RecordedHits out{.ours = foreseen(program, platform, "speculate"),
                   .pipellm = foreseen(program, platform, "pipellm"),
                   .tournament = ours.rate(),
                   .paper = theirs.rate(),
                   .contestants = {}};
  for (const PredictorScore& score : tournament.scores()) {
    out.contestants.push_back({score.name, share(score.hits, score.hits + score.misses)});
  }
  return out;
}

}  // namespace sealane::sim
