// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the core asks for, done: slots are sealed by workers, guarded, and wiped.

#include <exception>
#include <memory>
#include <new>

#include "serve/ahead.h"
#include "serve/events.h"

namespace sealane::serve {

void Ahead::perform_all() {
  while (const auto action = speculator_.poll(now())) perform(*action);
  if (speculator_.stopped()) close();
  if (watched()) tell_changes();
}

void Ahead::perform(const SealAction& action) {
  if (const SealSlot* seal = std::get_if<SealSlot>(&action)) {
    if (start(*seal)) return;
    speculator_.handle_sealed(seal->slot, Speculator::Sealed::not_at_all, now());
    speculator_.stop();
  } else if (const DropSlot* gone = std::get_if<DropSlot>(&action)) {
    records_.drop(gone->slot, gone->exposed);
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

// False: there is nobody to seal ahead, or no memory to tell him what.
bool Ahead::start(const SealSlot& what) try {
  auto job = std::make_unique<Job>(Job{.owner = this, .what = what});
  job->order = {what.host, reinterpret_cast<const uint8_t*>(what.from.address), schedule_, what.iv,
                what.digest};
  if (what.copy == kNoCopy) {
    const auto block = host_memory_.find(what.host.address);
    job->by_pages = block && block->what.ours && block->range.contains(what.host);
    if (!job->by_pages) job->order.source = nullptr;
    for (const GuardBook::Pointer& guard : guards_.find(what.host)) {
      if (guard->range.contains(what.host)) job->guard = guard;
    }
  }
  const auto work = [](void* context) {
    const std::unique_ptr<Job> mine(static_cast<Job*>(context));
    mine->owner->work(*mine);
  };
  if (!pool_.post(work, job.get())) return false;
  static_cast<void>(job.release());
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// On a worker.
void Ahead::work(Job& job) {
  const Instant began = now();
  SlotRecord record;
  auto how = Speculator::Sealed::not_at_all;
  try {
    how = fill(job, record);
  } catch (const std::exception&) {
    stop();
  }
  if (watched() && how == Speculator::Sealed::whole) tell_sealed(job, began);
  tell_and_do([&] {
    ++changes_;
    records_[job.what.slot] = record;
    speculator_.handle_sealed(job.what.slot, how, now());
  });
  changed_.notify_all();
}

Speculator::Sealed Ahead::fill(Job& job, SlotRecord& record) {
  if (!arm_guard(job)) return Speculator::Sealed::not_at_all;
  const bool guarded = job.guard && job.guard->state.load() == GuardBook::Entry::State::digest;
  job.order.digested = job.order.digested || guarded;
  return records_.seal(job.order, record);
}

void Ahead::stop() {
  try {
    const std::lock_guard lock(mutex_);
    speculator_.stop();
    perform_all();
  } catch (const std::exception&) {  // no memory even for that: what is left stays private
  }
  changed_.notify_all();
}

}  // namespace sealane::serve
