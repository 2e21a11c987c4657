// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a lane that seals ahead tells those who watch: who leads its predictors, what its slots
// hold, what its workers seal; and all of them, also those that have stopped.

#include <algorithm>

#include "serve/ahead.h"
#include "serve/events.h"

namespace sealane::serve {
namespace {

// What those that stopped had to tell.
struct Past {
  std::mutex mutex;
  std::vector<Ahead::Stats> stats;
};

Past& past() {
  static Past& made = *new Past;
  return made;
}

}  // namespace

// Stopped: its place is for another.
void Ahead::close() {
  if (std::exchange(closed_, true)) return;
  records_.close();
  {
    const std::lock_guard lock(past().mutex);
    past().stats.push_back(stats_locked());
  }
  for (auto& entry : all_) {
    Ahead* self = this;
    if (entry.compare_exchange_strong(self, nullptr)) break;
  }
  changed_.notify_all();
}

// One that stops meanwhile may be found twice, but is not missed.
std::vector<Ahead::Stats> Ahead::stats_of_all() {
  std::vector<Stats> out;
  for (auto& entry : all_) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead != nullptr) out.push_back(ahead->stats());
  }
  {
    const std::lock_guard lock(past().mutex);
    out.insert(out.end(), past().stats.begin(), past().stats.end());
  }
  std::sort(out.begin(), out.end(),
            [](const Stats& a, const Stats& b) { return a.number < b.number; });
  const auto same = [](const Stats& a, const Stats& b) { return a.number == b.number; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

Ahead::Stats Ahead::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_locked();
}

Ahead::Stats Ahead::stats_locked() const {
  const auto scores = source_->scores();
  const Pipeline& pipeline = speculator_.pipeline();
  return {.number = number_,
          .device = options_.device,
          .lane = options_.lane,
          .pipeline = pipeline.stats(),
          .answered = speculator_.stats().answered,
          .answered_ahead = speculator_.stats().answered_ahead,
          .slot_bytes = pipeline.slots().bytes(),
          .slot_bytes_peak = pipeline.slots().bytes_peak(),
          .leader = source_->leader(),
          .predictors = {scores.begin(), scores.end()}};
}

// With the lock held.
void Ahead::tell_changes() {
  Event event;
  event.device = static_cast<uint8_t>(options_.device);
  event.lane = static_cast<uint16_t>(options_.lane);
  event.begin = event.end = now();
  if (const std::string_view leader = source_->leader(); leader != told_leader_) {
    told_leader_ = leader;
    event.kind = EventKind::leader;
    event.text = leader.empty() ? "" : leader.data();  // a literal
    report(event);
  }
  if (const uint64_t bytes = speculator_.pipeline().slots().bytes(); bytes != told_slot_bytes_) {
    told_slot_bytes_ = bytes;
    event.kind = EventKind::slots;
    event.text = nullptr;
    event.bytes = bytes;
    report(event);
  }
}

void Ahead::tell_sealed(const Job& job, Instant began) const {
  Event event;
  event.kind = EventKind::sealed;
  event.asynchronous = job.what.copy == kNoCopy;
  event.device = static_cast<uint8_t>(options_.device);
  event.bytes = job.what.host.bytes;
  event.host = job.what.host.address;
  event.key = job.what.key;
  event.begin = began;
  event.end = now();
  report(event);
}

}  // namespace sealane::serve
