// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy threads: opened when the machine asks for one; and those who seal ahead for some of
// them.

#include <algorithm>

#include "base/log.h"
#include "serve/costs.h"
#include "serve/options.h"
#include "serve/runtime.h"

namespace sealane::serve {

CopyThread* Runtime::thread_at(CopyThreadId id) {
  const std::lock_guard lock(under_way_.mutex);
  return threads_[id].get();
}

void Runtime::open_missing(const CopyCall& call) {
  const auto missing = [&] {
    const std::lock_guard lock(under_way_.mutex);
    const auto id = under_way_.copies.missing_thread(call);
    const bool leaving = id && *id < threads_.size() && threads_[*id];  // give_up_contexts() has it
    return leaving ? std::nullopt : id;
  };
  while (missing()) {
    const std::lock_guard opening(opening_);
    const auto id = missing();
    if (!id) return;  // somebody else was quicker
    CopyThreadOptions wanted;
    wanted.id = *id;
    wanted.carrier.device = static_cast<int>(call.device);
    wanted.carrier.lane = next_number(wanted.carrier.device);
    wanted.carrier.direction = CopyThreads::direction_of(*id);
    if (CopyThreads::is_bulk(*id)) {
      wanted.ahead = make_ahead(wanted.carrier.device, wanted.carrier.lane);
    }
    std::unique_ptr<CopyThread> made = open_thread(wanted, call.device_address);
    if (!made && wanted.ahead != nullptr) wanted.ahead->stop();
    const std::lock_guard lock(under_way_.mutex);
    if (threads_.size() <= *id) threads_.resize(*id + 1);
    under_way_.copies.handle_thread(*id, made != nullptr, made ? made->ahead() : nullptr);
    threads_[*id] = std::move(made);
  }
}

std::unique_ptr<CopyThread> Runtime::open_thread(const CopyThreadOptions& wanted,
                                                 uint64_t reachable) {
  auto made = CopyThread::open(driver_, *this, under_way_, wanted);
  if (!made) {
    SEALANE_LOG(info, "the driver has no context for another lane");
    return nullptr;
  }
  const Code code = made->probe(reachable);
  if (code == kSuccess) return made;
  made->close();
  ContextHandle context = nullptr;
  if (code == kForged && driver_.context_of(nullptr, context) == kSuccess) {
    // Somebody on the bus is no reason to step aside: the error stands.
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_failed(reinterpret_cast<uint64_t>(context), code);
    tell_failure();
    return nullptr;
  }
  step_aside("a context of ours cannot reach the program's device memory");
  return nullptr;
}

// Those who watch tell copy threads apart by it: one that is opened again has another.
int Runtime::next_number(int device) {
  const auto of = static_cast<size_t>(device);
  if (of >= lanes_opened_.size()) lanes_opened_.resize(of + 1);
  return lanes_opened_[of]++;
}

Ahead* Runtime::make_ahead(int device, int lane) {
  AheadOptions made;
  made.device = device;
  made.lane = lane;
  made.policy = *speculation_.policy;
  made.costs = measure_costs(pool_.size());
  made.slot_bytes_max = options().slot_bytes_max / under_way_.copies.options().threads.bulk;
  made.page_guards = !speculation_.digests;
  if (budget_ == nullptr) budget_ = make_slot_budget(pool_.cores(), options().slot_bytes_max);
  made.budget = budget_.get();
  auto* const ahead = new Ahead(pool_, host_memory_, made);
  {
    const std::lock_guard lock(under_way_.mutex);
    aheads_.push_back(ahead);
  }
  std::vector<Range> there;  // told without the map's lock, which an Ahead takes under its own
  host_memory_.each([&](const auto& entry) { there.push_back(entry.range); });
  for (const Range& range : there) ahead->allocated(range);
  return ahead;
}

std::vector<Ahead*> Runtime::aheads() {
  const std::lock_guard lock(under_way_.mutex);
  return aheads_;
}

// What was allocated may be guessed before any copy has touched it: a model is loaded in order.
void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  host_memory_.add(range, block);
  for (Ahead* ahead : aheads()) ahead->allocated(range);
}

// A snapshot is what a copy carries from now on: what was sealed from its source is compared with
// it here. Other sources are compared when their turn has come (CopyThread::look_at_guards).
void Runtime::look_at_guards(const Call& call) {
  if (speculation_.policy == nullptr) return;
  for (const CopyCall& each : call.calls) {
    const bool snapshot = each.ours != 0 && each.memory != HostKind::registered;
    if (!snapshot || each.host.bytes < speculation_.policy->bulk_bytes_min) continue;
    for (Ahead* ahead : aheads()) ahead->check_guards(each.host);
  }
}

}  // namespace sealane::serve
