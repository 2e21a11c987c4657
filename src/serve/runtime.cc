// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy call of the program, from what it asks for to what is in its stream:
//
//   1. describe    which stream, which memory; what must be read in the call is read
//   2. put         the machine decides; its steps are done
//   3. wake        the copies are the copy threads'

#include "serve/runtime.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"
#include "serve/options.h"

namespace sealane::serve {
namespace {

constexpr unsigned kWorkersMax = 64;
constexpr unsigned kModelledWorkers = 8;  // a modelled host has the cores this machine lacks

// A number that is not to be worked out, 0 if it is.
unsigned fixed_workers() {
  if (options().workers > 0) return std::min(options().workers, kWorkersMax);
  return pace().dilation != nullptr && pace().dilation() > 0 ? kModelledWorkers : 0;
}

CopiesOptions copies_options(const SpeculationChoice& speculation) {
  CopiesOptions made;
  made.async = options().async;
  if (speculation.policy != nullptr) {
    made.bulk_bytes_min = speculation.policy->bulk_bytes_min;
    made.threads.bulk = kBulkThreads;
  }
  if (options().coalesce) made.costs = crossing_costs();
  return made;
}

uint64_t number_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

Route route_of(CopyVerdict verdict) {
  constexpr Route kRoutes[] = {Route::carried,         Route::passed,       Route::passed_capture,
                               Route::passed_pageable, Route::passed_aside, Route::passed};
  return kRoutes[static_cast<size_t>(verdict)];
}

}  // namespace

// Never deleted: threads of ours and exit handlers of the program use it to the end.
void Runtime::start(GpuDriver& driver) { process().runtime.store(new Runtime(driver)); }

// The caller of a loop takes part in it.
Runtime::Runtime(GpuDriver& driver)
    : driver_(driver),
      pool_(fixed_workers() > 0 ? WorkerPool(fixed_workers() - 1)
                                : WorkerPool(WorkerQuota::make())),
      speculation_(choose_speculation(options(), pool_.size())),
      under_way_(copies_options(speculation_)),
      memory_(pool_, options().staging_bytes_max),
      streams_(driver),
      events_(driver),
      crew_(driver, under_way_, memory_, pool_, speculation_) {
  SEALANE_LOG(info, "sealing ahead %s", serve::describe(speculation_).c_str());
}

// This is somebody else's process: nothing is thrown into it.
Route Runtime::copy_together(std::span<const CopyAsked> batch) {
  Call call;
  call.asked = batch;
  try {
    return offer(call);
  } catch (const std::exception& problem) {
    give_back_all(call);
    step_aside(problem.what());
    return Route::passed_aside;
  }
}

Route Runtime::offer(Call& call) {
  if (!options().async) return Route::passed;
  if (any_capturing()) return Route::passed_capture;
  if (aside_.load(std::memory_order_relaxed)) return Route::passed_aside;
  const auto entered = crew_.enter();
  Route route = describe(call);
  if (route == Route::carried) {
    for (const CopyCall& each : call.calls) {
      if (const char* const why = crew_.open_missing(each)) step_aside(why);
    }
    const std::lock_guard one_at_a_time(call.stream->mutex);
    route = put(call);
  }
  if (route != Route::carried) give_back_all(call);
  return route;
}

// --- 1. what it asks for

Route Runtime::describe(Call& call) {
  call.stream = streams_.get(call.asked.front().stream);
  if (!call.stream) return Route::passed_memory;
  call.calls.reserve(call.asked.size());
  call.held.reserve(call.asked.size());
  for (const CopyAsked& asked : call.asked) {
    CopyCall& made = call.calls.emplace_back();
    HeldCopy& held = call.held.emplace_back();
    held.stream = call.stream;
    if (const Route route = describe(asked, made, held); route != Route::carried) return route;
  }
  return Route::carried;
}

Route Runtime::describe(const CopyAsked& asked, CopyCall& out, HeldCopy& held) {
  const auto block = memory_.device().find(asked.device_address);
  const Range device{asked.device_address, asked.bytes};
  if (!block || !block->range.contains(device)) return Route::passed_memory;
  if (held.stream->device != block->what.device) return Route::passed_memory;
  out.direction = asked.direction;
  out.stream = held.stream->key;
  out.context = number_of(held.stream->context);
  out.device = static_cast<uint32_t>(held.stream->device);
  out.device_address = asked.device_address;
  out.host = {number_of(asked.host), asked.bytes};
  out.legacy = held.stream->legacy;
  out.read_now = asked.read_now;
  held.id = asked.id;
  held.device_address = asked.device_address;
  held.bytes = asked.bytes;
  return take_memory(asked, out, held);
}

// What a snapshot is made of is read here, in the call. Memory of which only a part is pinned may
// be a destination of ours still.
Route Runtime::take_memory(const CopyAsked& asked, CopyCall& out, HeldCopy& held) {
  const auto block = memory_.host().find(out.host.address);
  const bool pinned = block && block->range.contains(out.host);
  if (pinned) out.memory = block->what.registered ? HostKind::registered : HostKind::pinned;
  const auto side = host_side_of(out);
  if (!side) return asked.read_now ? Route::passed : Route::passed_pageable;
  held.host = static_cast<uint8_t*>(asked.host);
  if (*side == HostSide::in_place) {
    held.drivers = !block->what.ours;
    return Route::carried;
  }
  held.staged = true;
  if (*side == HostSide::at_turn) {
    held.program = asked.host;
    held.host = memory_.take(asked.bytes);
  } else {
    const bool partly = !pinned && (block || memory_.host().find(out.host.end() - 1));
    if (partly) drain(out.host);
    held.host = memory_.snapshot(asked.host, asked.bytes);
  }
  out.ours = number_of(held.host);
  return held.host != nullptr ? Route::carried : Route::passed_too_large;
}

// What the machine has got is not among them any more.
void Runtime::give_back_all(const Call& call) {
  for (const HeldCopy& copy : call.held) give_back(memory_, copy);
}

// --- 2. into the stream

Route Runtime::put(Call& call) {
  crew_.check_guards(call.calls);
  {
    const std::lock_guard lock(under_way_.mutex);
    tell_touched(*call.stream);
    under_way_.copies.handle_copies(call.calls, call.plan, SteadyClock().now());
    if (call.plan.verdict != CopyVerdict::carried) return route_of(call.plan.verdict);
    if (!hold(call)) return Route::passed;
  }
  for (; call.plan.done < call.plan.steps.size(); ++call.plan.done) {
    if (perform(call, call.plan.steps[call.plan.done]) == kSuccess) continue;
    refuse(call);
    return Route::passed;
  }
  {
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_put(call.plan);
  }
  wake(call);
  return Route::carried;
}

// With the lock held: what the machine cannot know of the copies. False: there is no memory for it,
// and as nothing of the call is in the stream yet, the machine forgets it.
bool Runtime::hold(Call& call) {
  size_t kept = 0;
  try {
    for (; kept < call.held.size(); ++kept) {
      under_way_.held.emplace(call.plan.copies[kept], call.held[kept]);
    }
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < kept; ++i) under_way_.held.erase(call.plan.copies[i]);
    under_way_.copies.handle_refused(call.plan, SteadyClock().now());
    return false;
  }
  call.held.clear();
  return true;
}

// A hook notes what goes into a stream in a word; the machine learns of it when it matters.
void Runtime::tell_touched(Stream& stream) {
  const uint64_t epoch = streams_.legacy_epoch();
  if (std::exchange(under_way_.legacy_epoch, epoch) != epoch) {
    under_way_.copies.handle_work(0, true);
  }
  if (stream.touched.exchange(false, std::memory_order_relaxed)) {
    under_way_.copies.handle_work(stream.key, stream.legacy);
  }
}

Code Runtime::perform(const Call& call, const CallStep& step) try {
  if (const auto* event = std::get_if<RecordEvent>(&step)) return record(call, *event);
  if (const auto* gate = std::get_if<PutGate>(&step)) {
    StreamGates& gates = call.stream->gates[CopyThreads::place_of(gate->thread)];
    if (gates.thread() == nullptr) gates.set_thread(crew_.thread_at(gate->thread));
    return gates.put(driver_, call.asked.front().stream, gate->value, memory_operations_);
  }
  return kSuccess;  // snapshots are there already
} catch (const std::exception&) {
  return kNotSupported;
}

Code Runtime::record(const Call& call, const RecordEvent& record) {
  const auto lease = events_.take(call.stream->context);
  if (!lease) return kNotSupported;
  const Code code = driver_.record(lease->event, call.asked.front().stream);
  if (code != kSuccess) return code;
  const std::lock_guard lock(under_way_.mutex);
  under_way_.events[record.event] = lease;
  return kSuccess;
}

// Some step could not be done: what has no gate is not ours, the rest goes.
void Runtime::refuse(Call& call) {
  {
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_refused(call.plan, SteadyClock().now());
    for (const CopyId copy : call.plan.copies) {
      if (under_way_.copies.under_way(copy)) continue;
      const auto held = under_way_.held.find(copy);
      call.held.push_back(std::move(held->second));
      under_way_.held.erase(held);
    }
    under_way_.changed.notify_all();
  }
  wake(call);
}

// --- 3. theirs

// Each thread that has something of the call has a gate in the stream.
void Runtime::wake(const Call& call) {
  for (size_t i = 0; i < call.plan.done; ++i) {
    const auto* gate = std::get_if<PutGate>(&call.plan.steps[i]);
    if (gate == nullptr) continue;
    call.stream->gates[CopyThreads::place_of(gate->thread)].thread()->wake(call.plan.copies);
  }
}

// --- what else the program does

void Runtime::set_capturing(StreamHandle handle, bool now) {
  if (!streams_.set_capturing(handle, now)) return;
  const std::lock_guard lock(under_way_.mutex);
  under_way_.copies.handle_capture(now);
}

void Runtime::forget_stream(StreamHandle handle) {
  set_capturing(handle, false);
  const StreamPointer gone = streams_.forget(handle);
  if (!gone) return;
  std::vector<EventPool::LeasePointer> leases;  // let go without the lock
  leases.reserve(kLeasesMax);
  const std::lock_guard lock(under_way_.mutex);
  under_way_.copies.handle_stream_gone(gone->key);
  take_forgotten(under_way_, leases);
}

void Runtime::forget_context(ContextHandle context) {
  streams_.forget_context(context);
  memory_.forget_context(context);
  {
    std::vector<EventPool::LeasePointer> leases;
    leases.reserve(kLeasesMax);
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_context_gone(number_of(context));
    take_forgotten(under_way_, leases);
    under_way_.any_failed.store(under_way_.copies.any_failed());
  }
  events_.forget(context);
}

void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  memory_.host().add(range, block);
  crew_.add_host_memory(range);
}

void Runtime::drain() {
  std::unique_lock lock(under_way_.mutex);
  under_way_.changed.wait(lock, [&] { return under_way_.copies.idle(); });
}

void Runtime::drain(ContextHandle context) {
  std::unique_lock lock(under_way_.mutex);
  under_way_.changed.wait(lock, [&] { return under_way_.copies.idle(number_of(context)); });
}

// Those who seal ahead go last: a copy that has just arrived is what they would begin with.
void Runtime::drain(Range range) {
  std::unique_lock lock(under_way_.mutex);
  do {
    under_way_.changed.wait(lock, [&] { return !under_way_.copies.touched(range); });
    if (speculation_.policy == nullptr) return;
    lock.unlock();
    crew_.stop_reading(range);
    lock.lock();
  } while (under_way_.copies.busy(range));
}

Code Runtime::failure_of(ContextHandle context) {
  const std::lock_guard lock(under_way_.mutex);
  return under_way_.copies.failure_of(number_of(context));
}

bool Runtime::may_run(ContextHandle context) {
  if (!any_failed()) return true;
  const std::lock_guard lock(under_way_.mutex);
  return under_way_.copies.may_run(number_of(context));
}

void Runtime::step_aside(const char* why) {
  if (aside_.exchange(true)) return;
  std::fprintf(stderr, "sealane: stepping aside, copies are the driver's again: %s\n", why);
}

}  // namespace sealane::serve
