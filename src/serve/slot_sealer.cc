// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/slot_sealer.h"

#include <exception>
#include <new>
#include <utility>

#include "serve/events.h"

namespace sealane::serve {
namespace {

// False: nobody takes it.
template <typename Job>
bool post(WorkerPool& pool, std::unique_ptr<Job> job, void (*work)(void*)) {
  if (!pool.post(work, job.get())) return false;
  static_cast<void>(job.release());
  return true;
}

}  // namespace

bool SlotSealer::start(const SealSlot& what, std::shared_ptr<const SplitGcm> schedule) try {
  auto job = std::make_unique<Job>(Job{.sealer = this, .what = what});
  job->order = {what.host, reinterpret_cast<const uint8_t*>(what.from.address), std::move(schedule),
                what.iv, what.digest};
  if (what.copy == kNoCopy) {
    const auto block = host_memory_.find(what.host.address);
    job->by_pages = block && block->what.ours && block->range.contains(what.host);
    if (!job->by_pages) job->order.source = nullptr;
    for (const GuardBook::Pointer& guard : guards_.find(what.host)) {
      if (guard->range.contains(what.host)) job->guard = guard;
    }
  }
  return post(pool_, std::move(job), [](void* context) {
    const std::unique_ptr<Job> mine(static_cast<Job*>(context));
    mine->sealer->work(*mine);
  });
} catch (const std::bad_alloc&) {
  return false;
}

void SlotSealer::work(Job& job) {
  const Instant began = SteadyClock().now();
  SlotRecord record;
  auto how = Speculator::Sealed::not_at_all;
  try {
    how = fill(job, record);
  } catch (const std::exception&) {
    owner_.handle_broken();
  }
  if (watched() && how == Speculator::Sealed::whole) tell(job, began);
  owner_.handle_sealed(job.what.slot, how, record);
}

Speculator::Sealed SlotSealer::fill(Job& job, SlotRecord& record) {
  if (job.guard) {
    guards_.arm(*job.guard, job.by_pages);
    if (job.guard->state.load() == GuardBook::Entry::State::digest) {
      const bool news = guards_.guards_pages() && !job.guard->told.exchange(true);
      const bool wanted = owner_.handle_digested(job.guard->range, news, job.what.slot);
      if (!wanted) return Speculator::Sealed::not_at_all;
      job.order.digested = true;
    }
  }
  return records_.seal(job.order, record);
}

void SlotSealer::unguard(const Range& range) {
  if (!guards_.remove(range)) return;
  struct Work {
    GuardBook& guards;
    Range range;
  };
  post(pool_, std::make_unique<Work>(Work{guards_, range}), [](void* context) {
    const std::unique_ptr<Work> mine(static_cast<Work*>(context));
    mine->guards.disarm(mine->range);
  });
}

void SlotSealer::tell(const Job& job, Instant began) const {
  Event event;
  event.kind = EventKind::sealed;
  event.asynchronous = job.what.copy == kNoCopy;
  event.device = static_cast<uint8_t>(device_);
  event.bytes = job.what.host.bytes;
  event.host = job.what.host.address;
  event.key = job.what.key;
  event.begin = began;
  event.end = SteadyClock().now();
  report(event);
}

}  // namespace sealane::serve
