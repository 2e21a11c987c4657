// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/ahead.h"

#include <utility>

#include "core/predict/tournament.h"
#include "os/pace.h"

namespace sealane::serve {
namespace {

constexpr size_t kTransfersKnown = size_t{1} << 15;

PipelineOptions pipeline_options(const AheadOptions& options, bool page_guards) {
  PipelineOptions made;
  made.page_guards = page_guards;
  made.policy = options.policy;
  made.costs = options.costs;
  made.slot_bytes_max = options.slot_bytes_max;
  return made;
}

}  // namespace

std::atomic<Ahead*> Ahead::all_[kLanesMax];
std::atomic<uint64_t> Ahead::made_{0};
thread_local Ahead* Ahead::carrying_ = nullptr;

Ahead::Ahead(WorkerPool& pool, const RangeMap<HostBlock>& host_memory, const AheadOptions& options)
    : pool_(pool),
      host_memory_(host_memory),
      options_(options),
      source_(std::make_unique<Tournament>(PredictLimits{.transfers_max = kTransfersKnown})),
      guards_(options.page_guards),
      speculator_(pipeline_options(options, guards_.guards_pages()), *source_),
      records_(pool, options.slot_bytes_max, options.budget) {
  for (auto& entry : all_) {
    Ahead* none = nullptr;
    if (entry.compare_exchange_strong(none, this)) return;
  }
  stop();  // nobody would find it
}

// --- 1. and 2. the machine's door

bool Ahead::handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) {
  return tell([&] { return speculator_.handle_asked(copy, call, side, now); });
}

void Ahead::handle_turn(CopyId copy, Instant now) {
  tell_and_do([&] { speculator_.handle_turn(copy, now); });
}

std::optional<WireTurn> Ahead::next_turn(Instant now) {
  return tell_and_do([&] { return speculator_.next_turn(now); });
}

void Ahead::handle_over(CopyId copy, bool succeeded, Instant now) {
  tell_and_do([&] { speculator_.handle_over(copy, succeeded, now); });
}

void Ahead::handle_freed(const Range& host, Instant now) {
  tell_and_do([&] { speculator_.handle_freed(host, now); });
}

bool Ahead::reads(const Range& host) const {
  const std::lock_guard lock(mutex_);
  return speculator_.reads(host);
}

bool Ahead::stopped() const {
  const std::lock_guard lock(mutex_);
  return speculator_.stopped();
}

bool Ahead::sealing() const {
  const std::lock_guard lock(mutex_);
  return speculator_.sealing();
}

// --- the program's thread, and the copy thread

void Ahead::allocated(const Range& host) {
  tell([&] { speculator_.handle_allocated(host); });
}

void Ahead::freed(const Range& host) {
  handle_freed(host, now());
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !speculator_.reads(host); });
}

// A copy ends with its last message sealed, unless the core was stopped under it: then workers may
// still be at messages that nobody waits for.
void Ahead::settle(CopyId copy) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !speculator_.sealing_for(copy); });
}

bool Ahead::await_turn() {
  for (;;) {
    bool waits = false;
    uint64_t seen = 0;
    const bool ready = tell_and_do([&] {
      seen = changes_;
      const bool has = speculator_.has_turn(now());
      waits = !has && speculator_.waits_for_worker();
      return has;
    });
    if (ready || !waits) return ready;
    await_change(seen);
  }
}

// Only workers can be what somebody waits for here, so this thread works with them.
void Ahead::await_change(uint64_t seen) {
  if (pool_.help()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return changes_ != seen || speculator_.stopped(); });
  pace().go_on_now();
}

std::optional<Instant> Ahead::deadline() const {
  const std::lock_guard lock(mutex_);
  return speculator_.deadline();
}

void Ahead::look() {
  tell_and_do([] {});
}

bool Ahead::begin() {
  const std::lock_guard lock(mutex_);
  const bool mine = speculator_.crossing() && !speculator_.stopped();
  if (mine) carrying_ = this;
  return mine;
}

// What follows is begun when the thread has looked for its next copy.
void Ahead::end(bool succeeded) {
  carrying_ = nullptr;
  for (;;) {
    uint64_t seen = 0;
    const bool waits = tell([&] {
      seen = changes_;
      return speculator_.crossing() && !speculator_.end_crossing(succeeded, now());
    });
    if (!waits) return;
    await_change(seen);
  }
}

// --- 3. the driver seals a message

// A new channel, or one with a new key, shows itself by the place its first message names. Several
// copies may be made from there at once: then nobody can tell whose message it is.
Ahead* Ahead::find(uint64_t key, const Iv& iv, const uint8_t* in) {
  if (carrying_ != nullptr) return carrying_;
  Ahead* by_place = nullptr;
  bool ambiguous = false;
  for (auto& entry : all_) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead == nullptr) continue;
    const std::lock_guard lock(ahead->mutex_);
    if (ahead->speculator_.expects(key, iv)) return ahead;
    if (!ahead->speculator_.expects(reinterpret_cast<uint64_t>(in))) continue;
    ambiguous = by_place != nullptr;
    by_place = ahead;
  }
  return ambiguous ? nullptr : by_place;
}

Ahead::Taken Ahead::take(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule,
                         const Iv& iv, const uint8_t* in, uint64_t bytes) {
  using Kind = Verdict::Kind;
  SeenMessage message{.key = key, .iv = iv, .piece = {reinterpret_cast<uint64_t>(in), bytes}};
  bool seen = false;
  for (;;) {
    uint64_t changes = 0;
    SlotRecord record;
    const Verdict verdict = tell_and_do([&] {
      if (!std::exchange(seen, true)) {
        speculator_.handle_seen(key, iv);
        schedule_ = schedule;
      }
      changes = changes_;
      const Verdict made = speculator_.answer(message, now());
      if (made.kind == Kind::compare || made.kind == Kind::from_slot) record = records_[made.slot];
      return made;
    });
    switch (verdict.kind) {
      case Kind::wait:
        await_change(changes);
        break;
      case Kind::compare:  // without the lock: the slot stays until its message is over
        message.same = records_.same_bytes(record, in, bytes);
        break;
      case Kind::drivers:
        return {};
      case Kind::seal_now:
        return {.ours = true, .iv = iv};
      case Kind::from_slot:
        return {true, record.bytes, record.host.bytes, record.hash, verdict.foreseen, iv};
    }
  }
}

// Of a record that was left in the middle the rest is wiped: its bytes were sealed otherwise.
void Ahead::give(const Taken& taken, uint64_t bytes) {
  const bool exposed = taken.record != nullptr && taken.used == taken.record_bytes;
  tell_and_do([&] { speculator_.handle_answered(taken.iv, exposed, bytes, now()); });
}

}  // namespace sealane::serve
