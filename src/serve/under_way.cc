// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/under_way.h"

#include <new>

#include "base/time.h"
#include "serve/errand.h"

namespace sealane::serve {

// --- with the lock held

bool UnderWay::hold(CallPlan& plan, std::vector<HeldCopy>& call) {
  size_t kept = 0;
  try {
    for (; kept < call.size(); ++kept) held.emplace(plan.copies[kept], call[kept]);
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < kept; ++i) held.erase(plan.copies[i]);
    copies.handle_refused(plan, SteadyClock().now());
    return false;
  }
  call.clear();
  return true;
}

void UnderWay::refuse(CallPlan& plan, std::vector<HeldCopy>& out) {
  copies.handle_refused(plan, SteadyClock().now());
  for (const CopyId copy : plan.copies) {
    if (copies.under_way(copy)) continue;
    const auto found = held.find(copy);
    out.push_back(std::move(found->second));
    held.erase(found);
  }
  changed.notify_all();
}

void UnderWay::take_forgotten(std::vector<EventPool::LeasePointer>& out) {
  while (out.size() < out.capacity()) {
    const auto event = copies.forgotten();
    if (!event) return;
    const auto lease = events.find(*event);
    if (lease == events.end()) continue;
    out.push_back(std::move(lease->second));
    events.erase(lease);
  }
}

// --- without it

template <typename Forget>
void UnderWay::forget(const Forget& tell) {
  std::vector<EventPool::LeasePointer> leases;  // let go without the lock
  leases.reserve(kLeasesMax);
  const std::lock_guard lock(mutex);
  tell();
  take_forgotten(leases);
  any_failed.store(copies.any_failed());
}

void UnderWay::forget_stream(StreamKey stream) {
  forget([&] { copies.handle_stream_gone(stream); });
}

void UnderWay::forget_context(ContextHandle context) {
  forget([&] { copies.handle_context_gone(key_of(context)); });
}

void UnderWay::drain(ContextHandle context) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return copies.idle(key_of(context)); });
}

void UnderWay::drain(const Range& range, StreamKey but) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, Errand::kPatience, [&] { return !copies.touched(range, but); });
}

Code UnderWay::failure_of(ContextHandle context) {
  const std::lock_guard lock(mutex);
  return copies.failure_of(key_of(context));
}

bool UnderWay::may_run(ContextHandle context) {
  if (!any_failed.load(std::memory_order_relaxed)) return true;
  const std::lock_guard lock(mutex);
  return copies.may_run(key_of(context));
}

}  // namespace sealane::serve
