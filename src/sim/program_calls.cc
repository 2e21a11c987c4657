// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/program_calls.h"

#include <utility>
#include <variant>
#include <vector>

#include "platform/cost.h"

namespace sealane::sim {
namespace {

template <typename... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

}  // namespace

void ProgramCalls::enter_context(Caller& caller, const workload::Action& action) const {
  std::visit(
      [&](const auto& asked) {
        if constexpr (requires { asked.context; }) {
          caller.context = static_cast<uint32_t>(asked.context);
        } else if constexpr (requires { asked.stream; }) {
          const auto found = contexts_.find(asked.stream);
          if (found != contexts_.end()) caller.context = found->second;
        }
      },
      action);
}

bool ProgramCalls::drained(uint32_t context) const {
  for (uint32_t stream = 0; stream < world_.device.streams(); ++stream) {
    if (world_.device.context(stream) == context && !world_.device.drained(stream)) return false;
  }
  return true;
}

uint32_t ProgramCalls::key(workload::StreamId stream) {
  return streams_.emplace(stream, static_cast<uint32_t>(streams_.size())).first->second;
}

Progress ProgramCalls::perform(Caller& caller, const workload::Operation& operation) {
  if (captured(operation.action)) return Progress::done;
  const Gpu& gpu = world_.setup.platform.gpu;
  const bool cc = world_.setup.policy.confidential;
  return std::visit(
      Overload{
          [&](const workload::Copy& asked) { return copy(caller, asked); },
          [&](const workload::Launch& asked) {
            const Duration time = kernel_time(gpu, cc, asked.run_time) + queue_gap(gpu);
            return launch(caller, asked.stream, {.kind = ItemKind::kernel, .run_time = time});
          },
          [&](const workload::CopyOnDevice& asked) {
            const Duration time = device_copy_time(gpu, cc, asked.bytes);
            return launch(caller, asked.stream, {.kind = ItemKind::kernel, .run_time = time});
          },
          [&](const workload::RecordEvent& asked) {
            const auto event = static_cast<uint32_t>(asked.event);
            const Progress put =
                launch(caller, asked.stream, {.kind = ItemKind::record, .event = event},
                       Oracle::CallKind::record);
            recorded_[asked.event] = world_.oracle.last_call(key(asked.stream));
            return put;
          },
          [&](const workload::WaitEvent& asked) {
            const auto found = recorded_.find(asked.event);
            return launch(caller, asked.stream,
                          {.kind = ItemKind::wait,
                           .record = found == recorded_.end() ? kNoCall : found->second,
                           .event = static_cast<uint32_t>(asked.event)},
                          Oracle::CallKind::wait);
          },
          [&](const workload::SyncStream& asked) { return sync_stream(caller, key(asked.stream)); },
          [&](const workload::SyncEvent& asked) { return sync_event(caller, asked.event); },
          [&](const workload::SyncContext& asked) {
            return sync_all(caller, static_cast<uint32_t>(asked.context));
          },
          [&](const workload::WriteHost& asked) {
            write(caller, asked.range);
            return Progress::done;
          },
          [&](const workload::AllocateHost& asked) {
            allocated_[asked.range.address] = asked.range.bytes;
            world_.memory.write(asked.range);
            world_.oracle.allocates(asked.range);
            runtime_.allocated(asked.range, asked.memory);
            return Progress::done;
          },
          [&](const workload::FreeHost& asked) { return free_host(caller, asked.address); },
          [&](const workload::CreateStream& asked) {
            const auto context = static_cast<uint32_t>(asked.context);
            contexts_[asked.stream] = context;
            world_.device.describe(key(asked.stream), context, asked.kind);
            world_.oracle.describe(key(asked.stream), context, asked.kind);
            return Progress::done;
          },
          [&](const workload::StreamWork& asked) {
            return launch(caller, asked.stream,
                          {.kind = ItemKind::work, .work = asked.kind, .host = asked.host});
          },
          [&](const workload::HoldStream& asked) { return hold(caller, asked); },
          [&](const workload::RaiseFlag& asked) {
            std::erase(caller.flags, asked.flag);
            world_.device.raise(asked.flag);
            return Progress::done;
          },
          [&](const workload::BatchCopies& asked) {
            caller.batched = asked.copies;
            return Progress::done;
          },
          [&](const workload::CaptureStream& asked) { return capture(caller, asked); },
          [&](const workload::CreateEvent&) { return charge_call(caller); },
          [&](const workload::AllocateDevice&) { return charge_call(caller); },
          [&](const workload::FreeDevice&) { return charge_call(caller); },
          [&](const auto&) { return Progress::done; },
      },
      operation.action);
}

// A call that reaches the device and leaves nothing in a stream.
Progress ProgramCalls::charge_call(Caller& caller) {
  const Setup& setup = world_.setup;
  caller.cost += call_surcharge(setup.platform.gpu, setup.policy.confidential);
  return Progress::done;
}

Progress ProgramCalls::launch(Caller& caller, workload::StreamId stream, ProgramCall call,
                              Oracle::CallKind kind) {
  call.stream = key(stream);
  call.call = world_.oracle.call(kind, call.stream, call.record);
  world_.log("thread {} puts call {} into stream {}", caller.id, call.call, call.stream);
  runtime_.other_work(call.stream);
  caller.cost = driver_.call(call);
  return Progress::done;
}

// What the device writes no guard sees.
void ProgramCalls::do_work(const Item& item) {
  if (!runtime_.may_run(item.stream)) return;
  const bool unseen = item.work == workload::WorkKind::device_write && runtime_.mapped(item.host);
  world_.oracle.host_written(item.host);
  world_.memory.write(item.host);
  if (!unseen) runtime_.write(item.host);
}

// A host that waits in its copies cannot hold their stream.
Progress ProgramCalls::hold(Caller& caller, const workload::HoldStream& asked) {
  if (!world_.setup.policy.async) return Progress::done;
  caller.flags.push_back(asked.flag);
  return launch(caller, asked.stream, {.kind = ItemKind::hold, .flag = asked.flag});
}

void ProgramCalls::raise_flags(Caller& caller) {
  for (const uint32_t flag : std::exchange(caller.flags, {})) world_.device.raise(flag);
}

Progress ProgramCalls::capture(Caller& caller, const workload::CaptureStream& asked) {
  if (asked.begins) {
    if (captures_.emplace(asked.stream, Duration{0}).second) runtime_.capture(true);
    return Progress::done;
  }
  const auto found = captures_.find(asked.stream);
  if (found == captures_.end()) return Progress::done;
  const Duration time = found->second;
  captures_.erase(found);
  runtime_.capture(false);
  return launch(caller, asked.stream, {.kind = ItemKind::kernel, .run_time = time});
}

// Into the graph, if its stream is being captured.
bool ProgramCalls::captured(const workload::Action& action) {
  if (captures_.empty()) return false;
  if (const auto* launched = std::get_if<workload::Launch>(&action)) {
    const auto found = captures_.find(launched->stream);
    if (found == captures_.end()) return false;
    found->second += launched->run_time;
    return true;
  }
  const auto* copy = std::get_if<workload::Copy>(&action);
  if (copy == nullptr || !captures_.contains(copy->stream)) return false;
  const ProgramCopy asked{.stream = key(copy->stream),
                          .direction = copy->direction,
                          .host = copy->host,
                          .device = copy->device,
                          .memory = copy->memory,
                          .sync = copy->call == workload::CallKind::sync};
  if (runtime_.copies({&asked, 1})) {
    world_.oracle.violate("capture", "a copy that was captured crossed by itself");
  }
  return true;
}

// --- copies

ProgramCopy ProgramCalls::program_copy(const Caller& caller, const workload::Copy& asked,
                                       uint64_t batch) {
  const uint32_t stream = key(asked.stream);
  // Such a copy returns when it is done, and with it all before it in its stream.
  const bool back_to_pageable =
      asked.direction == Direction::to_host && asked.memory != MemoryKind::pinned;
  ProgramCopy copy{
      .call = world_.oracle.call_copy(stream, {.direction = asked.direction,
                                               .host = asked.host,
                                               .device = asked.device,
                                               .stable_source = asked.memory == MemoryKind::pinned,
                                               .batch = batch}),
      .stream = stream,
      .direction = asked.direction,
      .host = asked.host,
      .device = asked.device,
      .memory = asked.memory,
      .sync = asked.call == workload::CallKind::sync || back_to_pageable};
  world_.log("thread {} copies {} [{:#x}, +{}) on stream {}: copy {}", caller.id,
             copy.direction == Direction::to_device ? "to the device" : "to the host",
             copy.host.address, copy.host.bytes, stream, copy.call);
  if (world_.setup.policy.confidential) {
    world_.counters.sealed_bytes += asked.host.bytes;
    world_.counters.sealed_messages += message_count(world_.setup.platform.cc, asked.host.bytes);
  }
  return copy;
}

Progress ProgramCalls::copy(Caller& caller, const workload::Copy& asked) {
  if (!caller.passed.empty()) {
    const ProgramCopy copy = caller.passed.front();
    caller.passed.pop_front();
    return pass(caller, asked.stream, copy);
  }
  const uint32_t batched = std::exchange(caller.batched, 0);
  if (batched > 1) return copy_batch(caller, batched);
  const ProgramCopy copy = program_copy(caller, asked);
  if (const auto cost = runtime_.copies({&copy, 1})) {
    caller.cost = *cost;
    return Progress::done;
  }
  return pass(caller, asked.stream, copy);
}

// All copies of the batch in one call, or one after the other by the driver.
Progress ProgramCalls::copy_batch(Caller& caller, uint32_t count) {
  std::vector<ProgramCopy> all;
  ++batches_;
  size_t next = caller.next;
  const auto& first = std::get<workload::Copy>(program_[caller.operations[next]].action);
  for (; next < caller.operations.size() && all.size() < count; ++next) {
    const auto* copy = std::get_if<workload::Copy>(&program_[caller.operations[next]].action);
    if (copy == nullptr || copy->stream != first.stream) break;
    all.push_back(program_copy(caller, *copy, batches_));
  }
  if (const auto cost = runtime_.copies(all)) {
    caller.cost = *cost;
    caller.next = next - 1;
    return Progress::done;
  }
  caller.passed.assign(all.begin() + 1, all.end());
  return pass(caller, first.stream, all.front());
}

Progress ProgramCalls::pass(Caller& caller, workload::StreamId stream, const ProgramCopy& copy) {
  world_.log("copy {} is passed", copy.call);
  runtime_.other_work(copy.stream);
  caller.cost = driver_.copy(copy, contexts_[stream], caller.id);
  if (!driver_.blocks(copy)) return Progress::done;
  caller.covers = {copy.call};
  raise_flags(caller);
  return fall_asleep(caller);
}

// --- waiting

Progress ProgramCalls::fall_asleep(Caller& caller) {
  if (caller.woken) return Progress::done;
  caller.asleep = true;
  ++world_.asleep;
  return Progress::asleep;
}

Progress ProgramCalls::sync_stream(Caller& caller, uint32_t stream) {
  raise_flags(caller);
  const CallId last = world_.oracle.last_call(stream);
  if (last != kNoCall) caller.covers = {last};
  driver_.sync(stream, world_.device.submitted(stream), caller.id);
  return fall_asleep(caller);
}

Progress ProgramCalls::sync_event(Caller& caller, workload::EventId event) {
  const auto found = recorded_.find(event);
  if (found == recorded_.end()) return Progress::done;
  caller.covers = {found->second};
  raise_flags(caller);
  const auto number = static_cast<uint32_t>(event);
  driver_.sync(driver_.event_stream(number), driver_.event_place(number), caller.id);
  return fall_asleep(caller);
}

Progress ProgramCalls::sync_all(Caller& caller, uint32_t context) {
  raise_flags(caller);
  for (const auto& [name, stream] : streams_) {
    if (contexts_[name] != context) continue;
    const CallId last = world_.oracle.last_call(stream);
    if (last != kNoCall) caller.covers.push_back(last);
  }
  driver_.sync_all(context, caller.id);
  return fall_asleep(caller);
}

// --- host memory

void ProgramCalls::write(Caller& caller, const Range& range) {
  world_.log("thread {} writes [{:#x}, +{})", caller.id, range.address, range.bytes);
  world_.oracle.program_writes(range);
  world_.memory.write(range);
  caller.cost += runtime_.write(range);
}

// Memory goes when nobody reads it any more: Sealane makes the free wait.
Progress ProgramCalls::free_host(Caller& caller, uint64_t address) {
  const auto found = allocated_.find(address);
  if (found == allocated_.end()) return Progress::done;
  const Range range{address, found->second};
  runtime_.freed(range);
  const bool open = !world_.setup.policy.confidential;  // then the driver waits for all
  if (runtime_.busy(range) || (open && !drained(caller.context))) {
    raise_flags(caller);
    return Progress::again;
  }
  world_.log("thread {} frees [{:#x}, +{})", caller.id, range.address, range.bytes);
  world_.oracle.program_writes(range);
  world_.memory.write(range);  // whatever comes there next is something else
  world_.oracle.frees(range);
  allocated_.erase(found);
  return Progress::done;
}

}  // namespace sealane::sim
