// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy call of the program, from what it asks for to what is in its stream:
//
//   1. describe    which stream, which memory; what must be read in the call is read
//   2. put         the machine decides; its steps are done
//   3. let_go      the copies are the copy threads'

#include "serve/runtime.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"
#include "serve/options.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kMovePart = 128_KiB;
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
  switch (verdict) {
    case CopyVerdict::carried:
      return Route::carried;
    case CopyVerdict::passed_capture:
      return Route::passed_capture;
    case CopyVerdict::passed_pageable:
      return Route::passed_pageable;
    case CopyVerdict::passed_aside:
      return Route::passed_aside;
    case CopyVerdict::passed:
    case CopyVerdict::refused:
      break;
  }
  return Route::passed;
}

}  // namespace

std::atomic<Runtime*> Runtime::current_{nullptr};

// Never deleted: threads of ours and exit handlers of the program use it to the end.
void Runtime::start(GpuDriver& driver) { current_.store(new Runtime(driver)); }

// The caller of a loop takes part in it.
Runtime::Runtime(GpuDriver& driver)
    : driver_(driver),
      pool_(fixed_workers() > 0 ? WorkerPool(fixed_workers() - 1)
                                : WorkerPool(WorkerQuota::make())),
      staging_(options().staging_bytes_max),
      speculation_(choose_speculation(options(), pool_.size())),
      under_way_(copies_options(speculation_)) {
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
  const std::shared_lock carrying(carrying_);
  Route route = describe(call);
  if (route == Route::carried) {
    for (const CopyCall& each : call.calls) open_missing(each);
    const std::lock_guard one_at_a_time(call.stream->mutex);
    route = put(call);
  }
  if (route != Route::carried) give_back_all(call);
  return route;
}

// --- 1. what it asks for

Route Runtime::describe(Call& call) {
  call.stream = stream(call.asked.front().stream);
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
  const auto block = device_memory_.find(asked.device_address);
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
  const auto block = host_memory_.find(out.host.address);
  const bool pinned = block && block->range.contains(out.host);
  if (pinned) out.memory = block->what.registered ? HostKind::registered : HostKind::pinned;
  const auto side = under_way_.copies.host_side(out);
  if (!side) return asked.read_now ? Route::passed : Route::passed_pageable;
  held.host = static_cast<uint8_t*>(asked.host);
  if (*side == HostSide::in_place) {
    held.drivers = !block->what.ours;
    return Route::carried;
  }
  held.staged = true;
  if (*side == HostSide::at_turn) {
    held.program = asked.host;
    held.host = static_cast<uint8_t*>(staging_.take(asked.bytes));
  } else {
    const bool partly = !pinned && (block || host_memory_.find(out.host.end() - 1));
    if (partly) drain(out.host);
    held.host = static_cast<uint8_t*>(snapshot(asked.host, asked.bytes));
  }
  out.ours = number_of(held.host);
  return held.host != nullptr ? Route::carried : Route::passed_too_large;
}

void* Runtime::snapshot(const void* from, uint64_t bytes) {
  void* to = staging_.take(bytes);
  if (to == nullptr) return nullptr;
  if (move(read_memory, from, to, bytes)) return to;
  staging_.give(to);
  return nullptr;
}

bool Runtime::move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to,
                   uint64_t bytes) {
  std::atomic<bool> whole{true};
  const uint64_t parts = (bytes + kMovePart - 1) / kMovePart;
  pool_.each(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t offset = i * kMovePart;
    const uint64_t here = std::min(kMovePart, bytes - offset);
    const bool done =
        how(static_cast<const uint8_t*>(from) + offset, static_cast<uint8_t*>(to) + offset, here);
    if (!done) whole.store(false);
    pace().end(Pace::host_copy, here, began);
  });
  return whole.load();
}

void Runtime::give_back(const HeldCopy& copy) {
  if (copy.staged && copy.host != nullptr) staging_.give(copy.host);
}

// What the machine has got is not among them any more.
void Runtime::give_back_all(const Call& call) {
  for (const HeldCopy& copy : call.held) give_back(copy);
}

// --- 2. into the stream

Route Runtime::put(Call& call) {
  look_at_guards(call);
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
  let_go(call);
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
  const uint64_t epoch = legacy_epoch_.load(std::memory_order_relaxed);
  if (std::exchange(under_way_.legacy_epoch, epoch) != epoch) {
    under_way_.copies.handle_work(0, true);
  }
  if (stream.touched.exchange(false, std::memory_order_relaxed)) {
    under_way_.copies.handle_work(stream.key, stream.legacy);
  }
}

Code Runtime::perform(const Call& call, const CallStep& step) try {
  if (const auto* event = std::get_if<RecordEvent>(&step)) return record(call, *event);
  if (const auto* gate = std::get_if<PutGate>(&step)) return put_gate(call, *gate);
  return kSuccess;  // snapshots are there already
} catch (const std::exception&) {
  return kNotSupported;
}

Code Runtime::put_gate(const Call& call, const PutGate& gate) {
  const StreamHandle handle = call.asked.front().stream;
  StreamGates& gates = call.stream->gates[CopyThreads::place_of(gate.thread)];
  if (memory_operations_.load(std::memory_order_relaxed)) {
    if (gates.thread == nullptr) {
      CopyThread* const thread = thread_at(gate.thread);
      if (!thread->take_word(gates.word)) return kNotSupported;
      gates.thread = thread;
      gates.behind = gates.word.value + 1 - gate.value;
    }
    const uint32_t value = gate.value + gates.behind;
    const Code code = driver_.wait_word(handle, gates.word.address, value);
    if (code == kSuccess) gates.word.value = value;
    if (code != kNotSupported) return code;
    memory_operations_.store(false);
  }
  auto* held = new std::shared_ptr<Ticket>(std::make_shared<Ticket>());
  {
    const std::lock_guard lock(call.stream->gates_mutex);
    gates.tickets.emplace_back(gate.value, *held);
  }
  const auto wait = [](void* data) {
    auto* ticket = static_cast<std::shared_ptr<Ticket>*>(data);
    (*ticket)->wait();
    delete ticket;
  };
  const Code code = driver_.run_on_host(handle, wait, held);
  if (code == kSuccess) return code;
  delete held;
  const std::lock_guard lock(call.stream->gates_mutex);
  gates.tickets.pop_back();
  return code;
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
  wake(call.plan.copies);
}

// --- 3. theirs

void Runtime::let_go(const Call& call) {
  {
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_put(call.plan);
  }
  wake(call.plan.copies);
}

// A copy thread may have begun, or even be done, with copies of its own accord.
void Runtime::wake(std::span<const CopyId> copies) {
  std::array<CopyThread*, kThreadsPerDevice> threads{};  // all of one device
  {
    const std::lock_guard lock(under_way_.mutex);
    for (const CopyId copy : copies) {
      if (!under_way_.copies.under_way(copy)) continue;
      const CopyThreadId id = under_way_.copies.thread_of(copy);
      threads[CopyThreads::place_of(id)] = threads_[id].get();
    }
  }
  for (CopyThread* const thread : threads) {
    if (thread != nullptr) thread->wake(copies);
  }
}

// --- what copy threads have done here

bool Runtime::fetch(const HeldCopy& copy) {
  return move(read_memory, copy.program, copy.host, copy.bytes);
}

void Runtime::deliver(const HeldCopy& copy) {
  if (!move(write_memory, copy.host, copy.program, copy.bytes)) {
    SEALANE_LOG(warn, "memory of the program was gone when a copy arrived");
  }
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

}  // namespace sealane::serve
