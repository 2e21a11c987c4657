// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/live_speculator.h"

#include <utility>

#include "core/predict/tournament.h"
#include "os/pace.h"
#include "serve/events.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr size_t kTransfersKnown = size_t{1} << 15;

PipelineOptions pipeline_options(const LiveSpeculatorOptions& options, bool page_guards) {
  PipelineOptions made;
  made.page_guards = page_guards;
  made.policy = options.policy;
  made.costs = options.costs;
  made.slot_bytes_max = options.slot_bytes_max;
  return made;
}

}  // namespace

LiveSpeculator::LiveSpeculator(WorkerPool& pool, const RangeMap<HostBlock>& host_memory,
                               const LiveSpeculatorOptions& options)
    : pool_(pool),
      host_memory_(host_memory),
      options_(options),
      number_(process().speculators.take_number()),
      source_(std::make_unique<Tournament>(PredictLimits{.transfers_max = kTransfersKnown})),
      records_(pool, options.slot_bytes_max, options.budget),
      sealer_(*this, pool, host_memory, records_, options.page_guards, options.device),
      speculator_(pipeline_options(options, sealer_.guards().guards_pages()), *source_) {
  if (!process().speculators.add(*this)) stop();  // nobody would find it
}

// --- 1. and 2. the machine's door

bool LiveSpeculator::handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) {
  return tell([&] { return speculator_.handle_asked(copy, call, side, now); });
}

void LiveSpeculator::handle_turn(CopyId copy, Instant now) {
  tell_and_do([&] { speculator_.handle_turn(copy, now); });
}

std::optional<WireTurn> LiveSpeculator::next_turn(Instant now) {
  return tell_and_do([&] { return speculator_.next_turn(now); });
}

void LiveSpeculator::handle_over(CopyId copy, bool succeeded, Instant now) {
  tell_and_do([&] { speculator_.handle_over(copy, succeeded, now); });
}

void LiveSpeculator::handle_freed(const Range& host) {
  tell_and_do([&] { speculator_.handle_freed(host); });
}

// --- the program's thread, and the copy thread

void LiveSpeculator::allocated(const Range& host) {
  tell([&] { speculator_.handle_allocated(host); });
}

void LiveSpeculator::freed(const Range& host) {
  handle_freed(host);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !speculator_.reads(host); });
}

// A copy ends with its last message sealed, unless the core was stopped under it: then workers may
// still be at messages that nobody waits for.
void LiveSpeculator::settle(CopyId copy) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !speculator_.sealing_for(copy); });
}

bool LiveSpeculator::await_turn() {
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
void LiveSpeculator::await_change(uint64_t seen) {
  if (pool_.help()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return changes_ != seen || speculator_.stopped(); });
  pace().go_on_now();
}

bool LiveSpeculator::begin() {
  const std::lock_guard lock(mutex_);
  const bool mine = speculator_.crossing() && !speculator_.stopped();
  if (mine) this_thread().carrying = this;
  return mine;
}

// What follows is begun when the thread has looked for its next copy.
void LiveSpeculator::end(bool succeeded) {
  this_thread().carrying = nullptr;
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

LiveSpeculator::Claim LiveSpeculator::claim(uint64_t key, const Iv& iv, const uint8_t* in) const {
  const std::lock_guard lock(mutex_);
  if (speculator_.expects(key, iv)) return Claim::by_iv;
  return speculator_.expects(reinterpret_cast<uint64_t>(in)) ? Claim::by_place : Claim::none;
}

LiveSpeculator::Taken LiveSpeculator::take(uint64_t key,
                                           const std::shared_ptr<const SplitGcm>& schedule,
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
        schedule_key_ = key;
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
void LiveSpeculator::give(const Taken& taken, uint64_t bytes) {
  const bool exposed = taken.record != nullptr && taken.used == taken.record_bytes;
  tell_and_do([&] { speculator_.handle_answered(taken.iv, exposed, bytes, now()); });
}

// --- was the source written since?

void LiveSpeculator::check_guards(const Range& host) {
  try {
    look_at_guards(host);
  } catch (const std::exception&) {
    stop();
  }
}

void LiveSpeculator::look_at_guards(const Range& host) {
  uint64_t message_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (speculator_.guard_of(host) == GuardKind::none) return;
    message_bytes = speculator_.pipeline().message_bytes();
  }
  std::vector<Range> written;
  if (sealer_.guards().find_written(host, message_bytes, written)) {
    std::vector<SlotRecord> compared;
    {
      const std::lock_guard lock(mutex_);
      // What a worker is reading now has no digest yet: nobody can tell whether it read it before.
      speculator_.sealing_ahead(host, written);
      records_.find_digested(host, compared);
    }
    records_.find_changed(compared, host_memory_, written);
  }
  if (written.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const Range& range : written) speculator_.handle_written(range);
}

// --- 4. what the core asks for

void LiveSpeculator::perform_all() {
  while (const auto action = speculator_.poll(now())) perform(*action);
  if (speculator_.stopped()) close();
  if (watched()) tell_changes();
}

void LiveSpeculator::perform(const SealAction& action) {
  if (const SealSlot* seal = std::get_if<SealSlot>(&action)) {
    // Under another key than the one its IV is of, that IV would come up there again.
    if (seal->key == schedule_key_ && sealer_.start(*seal, schedule_)) return;
    speculator_.handle_sealed(seal->slot, Speculator::Sealed::not_at_all, now());
    speculator_.stop();
  } else if (const DropSlot* gone = std::get_if<DropSlot>(&action)) {
    records_.drop(gone->slot, gone->exposed);
  } else if (const Guard* guard = std::get_if<Guard>(&action)) {
    sealer_.guards().add(guard->range);
  } else if (const Unguard* unguard = std::get_if<Unguard>(&action)) {
    sealer_.unguard(unguard->range);
  }
}

// The guard may have turned out to cost more than the slot brings: then the core gives it up.
bool LiveSpeculator::handle_digested(const Range& guarded, bool news, SlotId slot) {
  return tell_and_do([&] {
    if (news) speculator_.handle_guarded(guarded, GuardKind::digest);
    return speculator_.wanted(slot);
  });
}

void LiveSpeculator::handle_sealed(SlotId slot, Speculator::Sealed how, const SlotRecord& record) {
  tell_and_do([&] {
    ++changes_;
    records_[slot] = record;
    speculator_.handle_sealed(slot, how, now());
  });
  changed_.notify_all();
}

void LiveSpeculator::stop() {
  try {
    const std::lock_guard lock(mutex_);
    speculator_.stop();
    perform_all();
  } catch (const std::exception&) {  // no memory even for that: what is left stays private
  }
  changed_.notify_all();
}

// Stopped: its place is for another.
void LiveSpeculator::close() {
  if (std::exchange(closed_, true)) return;
  records_.close();
  process().speculators.remove(*this, stats_locked());
  changed_.notify_all();
}

// --- for those who watch

SpeculationStats LiveSpeculator::stats_locked() const {
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
void LiveSpeculator::tell_changes() {
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

}  // namespace sealane::serve
