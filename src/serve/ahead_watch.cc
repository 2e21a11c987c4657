// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a lane that seals ahead tells those who watch: who leads its predictors, what its slots
// hold, what its workers seal.

#include "serve/ahead.h"
#include "serve/events.h"

namespace sealane::serve {

Ahead::Stats Ahead::stats() {
  const std::lock_guard lock(mutex_);
  return stats_locked();
}

Ahead::Stats Ahead::stats_locked() const {
  const auto scores = source_->scores();
  return {.number = number_,
          .device = options_.device,
          .lane = options_.lane,
          .pipeline = pipeline_.stats(),
          .answered = answered_,
          .answered_ahead = answered_ahead_,
          .slot_bytes = pipeline_.slots().bytes(),
          .slot_bytes_peak = pipeline_.slots().bytes_peak(),
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
  if (const uint64_t bytes = pipeline_.slots().bytes(); bytes != told_slot_bytes_) {
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
  event.asynchronous = job.seal.flight == kNone;
  event.device = static_cast<uint8_t>(options_.device);
  event.bytes = job.seal.host.bytes;
  event.host = job.seal.host.address;
  event.key = job.key;
  event.begin = began;
  event.end = now();
  report(event);
}

}  // namespace sealane::serve
