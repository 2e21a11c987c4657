// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the core asks for, done: slots are sealed by workers, guarded, and wiped.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "os/pace.h"
#include "serve/ahead.h"
#include "serve/events.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPartBytes = 64_KiB;  // sealed without a break
constexpr Duration kShortFor{250'000'000};

}  // namespace

// Not between the last message of a turn and its end: counters are compared first, and nothing new
// may be on its way then.
void Ahead::pump() {
  if (in_flight_ && in_flight_->flight != kNone && messages_.over()) return;
  if (short_until_ && now() >= *short_until_) {
    short_until_.reset();
    pipeline_.handle_room(options_.slot_bytes_max);
  }
  while (!stopped_) {
    const auto action = pipeline_.poll(now());
    if (!action) break;
    run(*action);
  }
  if (pipeline_.failed()) stop_locked();
  if (watched()) tell_changes();
}

void Ahead::run(const Action& action) {
  if (const Seal* seal = std::get_if<Seal>(&action)) {
    start(*seal);
  } else if (const Publish* publish = std::get_if<Publish>(&action)) {
    turns_.emplace_back(*publish);
  } else if (const Pad* pad = std::get_if<Pad>(&action)) {
    turns_.emplace_back(*pad);
  } else if (const Void* gone = std::get_if<Void>(&action)) {
    drop(gone->slot, false);
  } else if (const Guard* guard = std::get_if<Guard>(&action)) {
    guards_.add(guard->range);
  } else if (const Unguard* unguard = std::get_if<Unguard>(&action)) {
    if (guards_.remove(unguard->range)) disarm_later(unguard->range);
  }
}

void Ahead::disarm_later(const Range& range) {
  struct Work {
    GuardBook& guards;
    Range range;
  };
  auto* work = new Work{guards_, range};
  const auto job = [](void* context) {
    const std::unique_ptr<Work> mine(static_cast<Work*>(context));
    mine->guards.disarm(mine->range);
  };
  if (!pool_.post(job, work)) delete work;
}

void Ahead::start(const Seal& seal) {
  auto job = std::make_unique<Job>(Job{.owner = this, .seal = seal});
  if (seal.flight != kNone) {
    const Copy& copy = copies_[seal.flight];
    job->source = copy.source + (seal.host.address - copy.host.address);
  } else {
    const auto block = host_memory_.find(seal.host.address);
    const bool ours = block && block->what.ours && block->range.contains(seal.host);
    if (ours) job->source = reinterpret_cast<const uint8_t*>(seal.host.address);
    job->by_pages = ours;
    for (const GuardBook::Pointer& guard : guards_.find(seal.host)) {
      if (guard->range.contains(seal.host)) job->guard = guard;
    }
  }
  job->key = key_;
  job->digested = hides_places_;
  if (follower_.started()) {
    job->schedule = schedule_;
    job->iv = follower_.predict(seal.position - followed_);
  }
  slots_[seal.slot] = {};
  slots_[seal.slot].host = seal.host;
  slots_[seal.slot].ahead = seal.flight == kNone;
  slots_[seal.slot].source = job->source;
  sealing_.push_back(seal.slot);
  const auto work = [](void* context) {
    const std::unique_ptr<Job> mine(static_cast<Job*>(context));
    Slot slot = {};
    const Instant began = now();
    mine->owner->attempt([&] { mine->owner->fill(*mine, slot); });
    if (watched() && slot.record != nullptr) mine->owner->tell_sealed(*mine, began);
    mine->owner->sealed(*mine, slot);
  };
  if (pool_.post(work, job.get())) {
    static_cast<void>(job.release());
  } else {  // nobody to seal ahead, and nobody to take it off the list
    sealing_.pop_back();
    stop_locked();
  }
}

void Ahead::fill(Job& job, Slot& slot) {
  const Range& host = job.seal.host;
  slot.host = host;
  slot.ahead = job.seal.flight == kNone;
  if (!arm_guard(job) || job.schedule == nullptr) return;
  auto* record = static_cast<uint8_t*>(memory_.take(host.bytes));
  slot.no_room = record == nullptr;
  if (slot.no_room) return;
  const bool digested =
      job.digested || (job.guard && job.guard->state.load() == GuardBook::Entry::State::digest);
  const uint8_t* from = job.source;
  if (from == nullptr || digested) {
    const uint64_t began = pace().begin();
    const void* const source = from != nullptr ? from : reinterpret_cast<const void*>(host.address);
    if (!read_memory(source, record, host.bytes)) {
      memory_.give(record);
      return;
    }
    if (digested) slot.digest = digest_.of(record, host.bytes);
    pace().end(Pace::host_copy, host.bytes, began);
    from = record;
  }
  slot.hash = seal_in_parts(job, from, record);
  slot.record = record;
  slot.iv = job.iv;
  slot.key = job.key;
}

// In parts that give way to whatever is asked for now, and that all workers share: what is needed
// first is ready first.
GcmHash Ahead::seal_in_parts(const Job& job, const uint8_t* from, uint8_t* record) const {
  const uint64_t bytes = job.seal.host.bytes;
  const uint64_t whole = bytes & ~uint64_t{kGcmBlockBytes - 1};
  std::array<GcmHash, MessageSize::kMost / kPartBytes> hashes;
  const auto length = [&](size_t i) { return std::min(kPartBytes, whole - i * kPartBytes); };
  const size_t parts = (whole + kPartBytes - 1) / kPartBytes;
  pool_.each_behind(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t at = i * kPartBytes;
    hashes[i] =
        job.schedule->seal_part(job.iv, at / kGcmBlockBytes, from + at, record + at, length(i));
    pace().end(Pace::aead_fast, length(i), began);
  });
  GcmHash hash;
  for (size_t i = 0; i < parts; ++i) {
    hash = job.schedule->join(hash, hashes[i], length(i) / kGcmBlockBytes);
  }
  if (whole != bytes) {
    job.schedule->seal_part(job.iv, whole / kGcmBlockBytes, from + whole, record + whole,
                            bytes - whole);
  }
  return hash;
}

void Ahead::sealed(const Job& job, const Slot& slot) {
  attempt([&] {
    {
      const std::lock_guard lock(mutex_);
      std::erase(sealing_, job.seal.slot);
      if (stopped_) {
        if (slot.record != nullptr) memory_.give(slot.record);
      } else {
        slots_[job.seal.slot] = slot;
        if (slot.record != nullptr) {
          pipeline_.handle_sealed(job.seal.slot, now());
        } else {
          pipeline_.handle_unsealed(job.seal.slot, now());
        }
        if (slot.no_room) run_short();
        pump();
      }
    }
    changed_.notify_all();
  });
}

// Others have the memory. What there is now must do, for a while.
void Ahead::run_short() {
  pipeline_.handle_room(pipeline_.slots().bytes());
  short_until_ = now() + kShortFor;
}

// What was never exposed is wiped. What was is ciphertext that anybody may have.
void Ahead::drop(SlotId id, bool exposed) {
  Slot& slot = slots_[id];
  if (slot.record != nullptr) memory_.give(slot.record, exposed ? Staging::keep : Staging::wiped);
  slot = {};
}

}  // namespace sealane::serve
