// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
//   1. describe    which stream, which memory; what must be read in the call is read
//   2. put         the machine decides; its steps are done
//   3. wake        the copies are the copy threads'

#include "serve/copy_intake.h"

#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "serve/options.h"

namespace sealane::serve {
namespace {

Route route_of(CopyVerdict verdict) {
  constexpr Route kRoutes[] = {Route::carried,         Route::passed,       Route::passed_capture,
                               Route::passed_pageable, Route::passed_aside, Route::passed};
  return kRoutes[static_cast<size_t>(verdict)];
}

}  // namespace

// This is somebody else's process: nothing is thrown into it.
Route CopyIntake::take(std::span<const CopyAsked> batch) {
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

Route CopyIntake::offer(Call& call) {
  if (!options().async) return Route::passed;
  if (streams_.any_capturing()) return Route::passed_capture;
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

Route CopyIntake::describe(Call& call) {
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

Route CopyIntake::describe(const CopyAsked& asked, CopyCall& out, HeldCopy& held) {
  const auto block = memory_.device().find(asked.device_address);
  const Range device{asked.device_address, asked.bytes};
  if (!block || !block->range.contains(device)) return Route::passed_memory;
  if (held.stream->device != block->what.device) return Route::passed_memory;
  out.direction = asked.direction;
  out.stream = held.stream->key;
  out.context = key_of(held.stream->context);
  out.device = static_cast<uint32_t>(held.stream->device);
  out.device_address = asked.device_address;
  out.device_block = block->range.address;
  out.host = {reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  out.legacy = held.stream->legacy;
  out.read_now = asked.read_now;
  held.id = asked.id;
  held.device_address = asked.device_address;
  held.bytes = asked.bytes;
  return take_memory(asked, out, held);
}

// What a snapshot is made of is read here, in the call, so nobody but the host may be about to
// write it. Memory of which only a part is pinned may be a destination of ours still.
Route CopyIntake::take_memory(const CopyAsked& asked, CopyCall& out, HeldCopy& held) {
  const auto block = memory_.host().find(out.host.address);
  const bool pinned = block && block->range.contains(out.host);
  // What begins in memory that a driver has pinned and ends elsewhere it refuses.
  if (block && !pinned && !block->what.registered) return Route::passed_memory;
  if (pinned) out.memory = block->what.registered ? HostKind::registered : HostKind::pinned;
  const auto side = host_side_of(out);
  if (!side) return asked.read_now ? Route::passed : Route::passed_pageable;
  held.host = static_cast<uint8_t*>(asked.host);
  if (*side == HostSide::in_place) {
    held.drivers = !block->what.ours;
    out.host_block = block->range.address;
    return Route::carried;
  }
  held.staged = true;
  if (*side == HostSide::at_turn) {
    held.program = asked.host;
    held.host = memory_.take(asked.bytes);
  } else {
    if (!pinned && !is_pageable(out.host)) return Route::passed_memory;
    if (!pinned && memory_.host().overlaps(out.host)) crew_.drain(out.host);
    held.host = memory_.snapshot(asked.host, asked.bytes);
  }
  out.ours = reinterpret_cast<uint64_t>(held.host);
  return held.host != nullptr ? Route::carried : Route::passed_too_large;
}

// That nobody told us of memory does not make it pageable: managed memory, what another library
// had mapped, or what was pinned before we were there is the driver's to know. It has such memory
// in whole pages, so both ends of a source are asked for, once if that is one page.
bool CopyIntake::is_pageable(const Range& source) {
  constexpr uint64_t kPage = 4096;
  const auto drivers = [](const HostBlock& block) { return !block.registered; };
  if (memory_.host().any_overlapping(source, drivers) || driver_.knows(source.address))
    return false;
  const uint64_t last = source.end() - 1;
  return last / kPage == source.address / kPage || !driver_.knows(last);
}

// What the machine has got is not among them any more.
void CopyIntake::give_back_all(const Call& call) {
  for (const HeldCopy& copy : call.held) give_back(memory_, copy);
}

// --- 2. into the stream

Route CopyIntake::put(Call& call) {
  crew_.check_guards(call.calls);
  {
    const std::lock_guard lock(under_way_.mutex);
    tell_touched(*call.stream);
    under_way_.copies.handle_copies(call.calls, call.plan, SteadyClock().now());
    if (call.plan.verdict != CopyVerdict::carried) return route_of(call.plan.verdict);
    if (!under_way_.hold(call.plan, call.held)) return Route::passed;
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

// A hook notes what goes into a stream in a word; the machine learns of it when it matters.
void CopyIntake::tell_touched(Stream& stream) {
  const uint64_t epoch = streams_.legacy_epoch();
  if (std::exchange(under_way_.legacy_epoch, epoch) != epoch) {
    under_way_.copies.handle_work(0, true);
  }
  if (ProgramStreams::take_touched(stream)) {
    under_way_.copies.handle_work(stream.key, stream.legacy);
  }
}

Code CopyIntake::perform(const Call& call, const CallStep& step) try {
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

EventPool::LeasePointer CopyIntake::mark(ContextHandle context, StreamHandle stream) try {
  auto lease = events_.take(context);
  return lease && driver_.record(lease->event, stream) == kSuccess ? lease : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

Code CopyIntake::record(const Call& call, const RecordEvent& record) {
  const auto lease = mark(call.stream->context, call.asked.front().stream);
  if (!lease) return kNotSupported;
  const std::lock_guard lock(under_way_.mutex);
  under_way_.events[record.event] = lease;
  return kSuccess;
}

// Some step could not be done: what has no gate is not ours, the rest goes.
void CopyIntake::refuse(Call& call) {
  {
    const std::lock_guard lock(under_way_.mutex);
    under_way_.refuse(call.plan, call.held);
  }
  wake(call);
}

// --- 3. theirs

// Each thread that has something of the call has a gate in the stream.
void CopyIntake::wake(const Call& call) {
  for (size_t i = 0; i < call.plan.done; ++i) {
    const auto* gate = std::get_if<PutGate>(&call.plan.steps[i]);
    if (gate == nullptr) continue;
    call.stream->gates[CopyThreads::place_of(gate->thread)].thread()->wake(call.plan.copies);
  }
}

void CopyIntake::step_aside(const char* why) {
  if (aside_.exchange(true)) return;
  std::fprintf(stderr, "sealane: stepping aside, copies are the driver's again: %s\n", why);
}

}  // namespace sealane::serve
