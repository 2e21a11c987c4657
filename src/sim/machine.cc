// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/machine.h"

#include <array>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>

#include "platform/cost.h"

namespace sealane::sim {
namespace {

constexpr Duration kRetry{5'000};

using FaultKind = ScriptedFault::Kind;
constexpr std::array kTampering{FaultKind::flip, FaultKind::drop, FaultKind::repeat,
                                FaultKind::swap};

double in_ms(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

template <typename... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

// What a thread's call is called in a timeline.
const char* name_of(const workload::Action& action) {
  return std::visit(Overload{
                        [](const workload::Copy& copy) {
                          return copy.direction == Direction::to_device ? "copy to device"
                                                                        : "copy to host";
                        },
                        [](const workload::Launch&) { return "launch"; },
                        [](const workload::SyncStream&) { return "synchronise"; },
                        [](const workload::SyncEvent&) { return "synchronise"; },
                        [](const workload::SyncContext&) { return "synchronise"; },
                        [](const auto&) { return "call"; },
                    },
                    action);
}

}  // namespace

Machine::Machine(const workload::Program& program, const Setup& setup)
    : world_(setup), program_(program), patience_(setup) {
  std::map<workload::ThreadId, uint32_t> keys;
  for (uint32_t i = 0; i < program.size(); ++i) {
    const auto [found, added] =
        keys.emplace(program[i].thread, static_cast<uint32_t>(threads_.size()));
    if (added) threads_.emplace_back();
    threads_[found->second].operations.push_back(i);
    patience_.allow(program[i], setup);
  }
  for (const ScriptedFault& fault : setup.script) script_.emplace(fault.before, fault);
  begin();
}

Machine::Machine(workload::Feed& feed, const Setup& setup)
    : world_(setup), feed_(&feed), program_(written_), patience_(setup) {
  threads_.emplace_back();
  begin();
}

void Machine::begin() {
  running_ = world_.threads = static_cast<uint32_t>(threads_.size());
  runtime_.emplace(world_, *this);
  driver_.emplace(world_, *this);
  world_.cpu_writes = [this](const Range& range) { runtime_->write(range); };
  world_.device.on_work([this](const Item& item) { do_work(item); });
}

Outcome Machine::run() {
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    world_.events.add(Instant{}, EventKind::thread_runs, thread);
  }
  while (running_ > 0 && !world_.oracle.broken()) {
    if (world_.events.empty()) {
      world_.oracle.violate("deadlock", fmt::format("{} threads wait for ever", running_));
      break;
    }
    handle(world_.events.pop());
    if (patience_.ended(world_.now(), world_.events.popped(), retries_)) {
      world_.oracle.violate(
          "livelock", fmt::format("{} threads are not done after {} events and {:.1f} ms, {} and "
                                  "{:.1f} ms are more than enough",
                                  running_, world_.events.popped(), in_ms(world_.now() - Instant{}),
                                  patience_.events() + retries_, in_ms(patience_.time())));
    }
  }
  // What is still in the streams of a context that has failed must not run.
  constexpr uint64_t kAfterFailure = 20'000;
  for (uint64_t i = 0; world_.error && i < kAfterFailure; ++i) {
    if (world_.events.empty() || world_.oracle.broken()) break;
    handle(world_.events.pop());
  }
  return outcome();
}

void Machine::handle(const SimEvent& event) {
  switch (event.kind) {
    case EventKind::thread_runs:
      step(event.a);
      break;
    case EventKind::item_starts:
      world_.device.look_again();
      break;
    case EventKind::kernel_ends:
      world_.device.kernel_ends(event.a);
      break;
    case EventKind::notify:
      runtime_->reached(event.a, event.b);
      driver_->notify(event.a, event.b);
      break;
    case EventKind::worker_done:
      runtime_->worker_done(event.a, event.b);
      break;
    case EventKind::sent:
      runtime_->sent(event.a);
      break;
    case EventKind::crossed:
      runtime_->crossed(event.a);
      break;
    case EventKind::ending:
      runtime_->ending_done(event.a);
      break;
    case EventKind::timer:
      break;
    case EventKind::driver_free:
      driver_->copy_finished(event.a, static_cast<CallId>(event.b));
      break;
    case EventKind::copy_done:
      driver_->copy_done(static_cast<CallId>(event.b));
      break;
  }
  if (!world_.oracle.broken()) runtime_->pump();
}

// --- threads

void Machine::step(uint32_t id) {
  Thread& thread = threads_[id];
  if (thread.next == thread.operations.size() && feed_ != nullptr) write_more(thread);
  const bool over = thread.next == thread.operations.size();
  if (!over) enter_context(thread, program_[thread.operations[thread.next]].action);
  if (over || failed(thread.context)) {
    raise_flags(id);
    thread.next = thread.operations.size();
    --running_;
    ++world_.asleep;
    ended_ = world_.now();
    return;
  }
  const workload::Operation& operation = program_[thread.operations[thread.next]];
  if (!std::exchange(thread.thought, true) && operation.think > Duration{0}) {
    const Duration think = runtime_->shared(operation.think);
    world_.events.add(world_.now() + think, EventKind::thread_runs, id);
    return;
  }
  thread.called = world_.now();
  thread.cost = kCallTime;
  thread.woken = false;
  thread.covers.clear();
  follow_script(thread.operations[thread.next]);
  inject_faults(id);
  switch (perform(id, operation)) {
    case Progress::done:
      finish_call(id);
      break;
    case Progress::asleep:
      break;
    case Progress::again:
      ++retries_;
      world_.events.add(world_.now() + kRetry, EventKind::thread_runs, id);
      break;
  }
}

// The only thread has made all its calls: what the program has done so far is forgotten.
void Machine::write_more(Thread& thread) {
  written_.clear();
  bool more = true;
  while (written_.empty() && more) more = feed_->extend(world_.now(), written_);
  if (!more) feed_ = nullptr;
  for (const workload::Operation& operation : written_) patience_.allow(operation, world_.setup);
  thread.operations.resize(written_.size());
  std::iota(thread.operations.begin(), thread.operations.end(), 0);
  thread.next = 0;
}

Machine::Progress Machine::fall_asleep(uint32_t id) {
  Thread& thread = threads_[id];
  if (thread.woken) return Progress::done;
  thread.asleep = true;
  ++world_.asleep;
  return Progress::asleep;
}

void Machine::wake(uint32_t id) {
  Thread& thread = threads_[id];
  if (!thread.asleep) {
    thread.woken = true;
    return;
  }
  thread.asleep = false;
  --world_.asleep;
  finish_call(id);
}

void Machine::wake_all(uint32_t context) {
  for (uint32_t id = 0; id < threads_.size(); ++id) {
    if (threads_[id].context == context) wake(id);
  }
}

void Machine::enter_context(Thread& thread, const workload::Action& action) {
  std::visit(
      [&](const auto& asked) {
        if constexpr (requires { asked.context; }) {
          thread.context = static_cast<uint32_t>(asked.context);
        } else if constexpr (requires { asked.stream; }) {
          const auto found = contexts_.find(asked.stream);
          if (found != contexts_.end()) thread.context = found->second;
        }
      },
      action);
}

// Every call of the program in it returns an error.
bool Machine::failed(uint32_t context) const {
  return world_.device.failed(context) || runtime_->failed(context);
}

void Machine::crash(uint32_t context) {
  world_.log("work of the program fails context {}", context);
  if (!world_.error) world_.error = "work of the program failed";
  ++world_.counters.faults;
  world_.oracle.stops(context);
  world_.device.fail(context);
  wake_all(context);
}

bool Machine::drained(uint32_t context) const {
  for (uint32_t stream = 0; stream < world_.device.streams(); ++stream) {
    if (world_.device.context(stream) == context && !world_.device.drained(stream)) return false;
  }
  return true;
}

void Machine::finish_call(uint32_t id) {
  Thread& thread = threads_[id];
  if (!failed(thread.context)) {
    for (const CallId last : thread.covers) world_.oracle.sync_returns(last);
  }
  ++world_.counters.operations;
  world_.timeline.add({.track = Track::thread,
                       .index = id,
                       .what = name_of(program_[thread.operations[thread.next]].action),
                       .from = thread.called,
                       .until = world_.now() + thread.cost});
  ++thread.next;
  thread.thought = false;
  world_.events.add(world_.now() + thread.cost, EventKind::thread_runs, id);
}

// --- calls

uint32_t Machine::key(workload::StreamId stream) {
  return streams_.emplace(stream, static_cast<uint32_t>(streams_.size())).first->second;
}

Machine::Progress Machine::perform(uint32_t id, const workload::Operation& operation) {
  Thread& thread = threads_[id];
  if (captured(operation.action)) return Progress::done;
  const Gpu& gpu = world_.setup.platform.gpu;
  const bool cc = world_.setup.policy.confidential;
  const auto oracle_call = [&](Oracle::CallKind kind, uint32_t stream, CallId on = kNoCall) {
    return world_.oracle.call(kind, stream, on);
  };
  return std::visit(
      Overload{
          [&](const workload::Copy& asked) { return copy(id, asked); },
          [&](const workload::Launch& asked) {
            const uint32_t stream = key(asked.stream);
            const CallId call = oracle_call(Oracle::CallKind::kernel, stream);
            return launch({.kind = ItemKind::kernel,
                           .stream = stream,
                           .call = call,
                           .run_time = kernel_time(gpu, cc, asked.run_time) + queue_gap(gpu)},
                          id);
          },
          [&](const workload::CopyOnDevice& asked) {
            const uint32_t stream = key(asked.stream);
            const CallId call = oracle_call(Oracle::CallKind::kernel, stream);
            return launch({.kind = ItemKind::kernel,
                           .stream = stream,
                           .call = call,
                           .run_time = device_copy_time(gpu, cc, asked.bytes)},
                          id);
          },
          [&](const workload::RecordEvent& asked) {
            const uint32_t stream = key(asked.stream);
            const CallId call = oracle_call(Oracle::CallKind::record, stream);
            recorded_[asked.event] = call;
            return launch({.kind = ItemKind::record,
                           .stream = stream,
                           .call = call,
                           .event = static_cast<uint32_t>(asked.event)},
                          id);
          },
          [&](const workload::WaitEvent& asked) {
            const uint32_t stream = key(asked.stream);
            const auto found = recorded_.find(asked.event);
            const CallId on = found == recorded_.end() ? kNoCall : found->second;
            const CallId call = oracle_call(Oracle::CallKind::wait, stream, on);
            return launch({.kind = ItemKind::wait,
                           .stream = stream,
                           .call = call,
                           .record = on,
                           .event = static_cast<uint32_t>(asked.event)},
                          id);
          },
          [&](const workload::SyncStream& asked) {
            sync_stream(id, key(asked.stream));
            return fall_asleep(id);
          },
          [&](const workload::SyncEvent& asked) {
            const auto found = recorded_.find(asked.event);
            if (found == recorded_.end()) return Progress::done;
            thread.covers = {found->second};
            sync_event(id, static_cast<uint32_t>(asked.event));
            return fall_asleep(id);
          },
          [&](const workload::SyncContext& asked) {
            sync_all(id, static_cast<uint32_t>(asked.context));
            return fall_asleep(id);
          },
          [&](const workload::WriteHost& asked) {
            write(id, asked.range);
            return Progress::done;
          },
          [&](const workload::AllocateHost& asked) {
            allocated_[asked.range.address] = asked.range.bytes;
            world_.memory.write(asked.range);
            world_.oracle.allocates(asked.range);
            runtime_->allocated(asked.range, asked.memory);
            return Progress::done;
          },
          [&](const workload::FreeHost& asked) { return free_host(id, asked.address); },
          [&](const workload::CreateStream& asked) {
            const auto context = static_cast<uint32_t>(asked.context);
            contexts_[asked.stream] = context;
            world_.device.describe(key(asked.stream), context, asked.kind);
            world_.oracle.describe(key(asked.stream), context, asked.kind);
            return Progress::done;
          },
          [&](const workload::StreamWork& asked) { return work(id, asked); },
          [&](const workload::HoldStream& asked) { return hold(id, asked); },
          [&](const workload::RaiseFlag& asked) {
            std::erase(thread.flags, asked.flag);
            world_.device.raise(asked.flag);
            return Progress::done;
          },
          [&](const workload::BatchCopies& asked) {
            thread.batched = asked.copies;
            return Progress::done;
          },
          [&](const workload::CaptureStream& asked) { return capture(id, asked); },
          [&](const workload::CreateEvent&) { return charge_call(id); },
          [&](const workload::AllocateDevice&) { return charge_call(id); },
          [&](const workload::FreeDevice&) { return charge_call(id); },
          [&](const auto&) { return Progress::done; },
      },
      operation.action);
}

// A call that reaches the device and leaves nothing in a stream.
Machine::Progress Machine::charge_call(uint32_t id) {
  const Setup& setup = world_.setup;
  threads_[id].cost += call_surcharge(setup.platform.gpu, setup.policy.confidential);
  return Progress::done;
}

Machine::Progress Machine::launch(const ProgramCall& call, uint32_t id) {
  world_.log("thread {} puts call {} into stream {}", id, call.call, call.stream);
  runtime_->other_work(call.stream);
  threads_[id].cost = driver_->call(call);
  return Progress::done;
}

Machine::Progress Machine::work(uint32_t id, const workload::StreamWork& asked) {
  const uint32_t stream = key(asked.stream);
  const CallId call = world_.oracle.call(Oracle::CallKind::kernel, stream);
  return launch({.kind = ItemKind::work,
                 .stream = stream,
                 .call = call,
                 .work = asked.kind,
                 .host = asked.host},
                id);
}

// The turn of such work has come. What the device writes no guard sees.
void Machine::do_work(const Item& item) {
  if (!runtime_->may_run(item.stream)) return;
  const bool unseen = item.work == workload::WorkKind::device_write && runtime_->mapped(item.host);
  world_.oracle.host_written(item.host);
  world_.memory.write(item.host);
  if (!unseen) runtime_->write(item.host);
}

// A host that waits in its copies cannot hold their stream.
Machine::Progress Machine::hold(uint32_t id, const workload::HoldStream& asked) {
  if (!world_.setup.policy.async) return Progress::done;
  const uint32_t stream = key(asked.stream);
  threads_[id].flags.push_back(asked.flag);
  const CallId call = world_.oracle.call(Oracle::CallKind::kernel, stream);
  return launch({.kind = ItemKind::hold, .stream = stream, .call = call, .flag = asked.flag}, id);
}

// Before the thread waits for anything.
void Machine::raise_flags(uint32_t id) {
  for (const uint32_t flag : std::exchange(threads_[id].flags, {})) world_.device.raise(flag);
}

Machine::Progress Machine::capture(uint32_t id, const workload::CaptureStream& asked) {
  if (asked.begins) {
    if (captures_.emplace(asked.stream, Duration{0}).second) runtime_->capture(true);
    return Progress::done;
  }
  const auto found = captures_.find(asked.stream);
  if (found == captures_.end()) return Progress::done;
  const Duration time = found->second;
  captures_.erase(found);
  runtime_->capture(false);
  const uint32_t stream = key(asked.stream);
  const CallId call = world_.oracle.call(Oracle::CallKind::kernel, stream);
  return launch({.kind = ItemKind::kernel, .stream = stream, .call = call, .run_time = time}, id);
}

// Into the graph, if its stream is being captured.
bool Machine::captured(const workload::Action& action) {
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
  if (runtime_->copies({&asked, 1})) {
    world_.oracle.violate("capture", "a copy that was captured crossed by itself");
  }
  return true;
}

ProgramCopy Machine::program_copy(uint32_t id, const workload::Copy& asked) {
  const uint32_t stream = key(asked.stream);
  // Such a copy returns when it is done, and with it all before it in its stream.
  const bool back_to_pageable =
      asked.direction == Direction::to_host && asked.memory != MemoryKind::pinned;
  ProgramCopy copy{.call = world_.oracle.call_copy(
                       stream, {.direction = asked.direction,
                                .host = asked.host,
                                .device = asked.device,
                                .stable_source = asked.memory == MemoryKind::pinned}),
                   .stream = stream,
                   .direction = asked.direction,
                   .host = asked.host,
                   .device = asked.device,
                   .memory = asked.memory,
                   .sync = asked.call == workload::CallKind::sync || back_to_pageable};
  world_.log("thread {} copies {} [{:#x}, +{}) on stream {}: copy {}", id,
             copy.direction == Direction::to_device ? "to the device" : "to the host",
             copy.host.address, copy.host.bytes, stream, copy.call);
  if (world_.setup.policy.confidential) {
    world_.counters.sealed_bytes += asked.host.bytes;
    world_.counters.sealed_messages += message_count(world_.setup.platform.cc, asked.host.bytes);
  }
  return copy;
}

Machine::Progress Machine::copy(uint32_t id, const workload::Copy& asked) {
  Thread& thread = threads_[id];
  if (!thread.passed.empty()) {
    const ProgramCopy copy = thread.passed.front();
    thread.passed.pop_front();
    return pass(id, asked.stream, copy);
  }
  const uint32_t batched = std::exchange(thread.batched, 0);
  if (batched > 1) return copy_batch(id, batched);
  const ProgramCopy copy = program_copy(id, asked);
  if (const auto cost = runtime_->copies({&copy, 1})) {
    thread.cost = *cost;
    return Progress::done;
  }
  return pass(id, asked.stream, copy);
}

// All copies of the batch in one call, or one after the other by the driver.
Machine::Progress Machine::copy_batch(uint32_t id, uint32_t count) {
  Thread& thread = threads_[id];
  std::vector<ProgramCopy> all;
  size_t next = thread.next;
  const auto& first = std::get<workload::Copy>(program_[thread.operations[next]].action);
  for (; next < thread.operations.size() && all.size() < count; ++next) {
    const auto* copy = std::get_if<workload::Copy>(&program_[thread.operations[next]].action);
    if (copy == nullptr || copy->stream != first.stream) break;
    all.push_back(program_copy(id, *copy));
  }
  if (const auto cost = runtime_->copies(all)) {
    thread.cost = *cost;
    thread.next = next - 1;
    return Progress::done;
  }
  thread.passed.assign(all.begin() + 1, all.end());
  return pass(id, first.stream, all.front());
}

Machine::Progress Machine::pass(uint32_t id, workload::StreamId stream, const ProgramCopy& copy) {
  Thread& thread = threads_[id];
  world_.log("copy {} is passed", copy.call);
  runtime_->other_work(copy.stream);
  thread.cost = driver_->copy(copy, contexts_[stream], id);
  if (!driver_->blocks(copy)) return Progress::done;
  thread.covers = {copy.call};
  raise_flags(id);
  return fall_asleep(id);
}

void Machine::sync_stream(uint32_t id, uint32_t stream) {
  raise_flags(id);
  const CallId last = world_.oracle.last_call(stream);
  if (last != kNoCall) threads_[id].covers = {last};
  driver_->sync(stream, world_.device.submitted(stream), id);
}

void Machine::sync_event(uint32_t id, uint32_t event) {
  raise_flags(id);
  driver_->sync(driver_->event_stream(event), driver_->event_place(event), id);
}

void Machine::sync_all(uint32_t id, uint32_t context) {
  raise_flags(id);
  for (const auto& [name, stream] : streams_) {
    if (contexts_[name] != context) continue;
    const CallId last = world_.oracle.last_call(stream);
    if (last != kNoCall) threads_[id].covers.push_back(last);
  }
  driver_->sync_all(context, id);
}

void Machine::write(uint32_t id, const Range& range) {
  world_.log("thread {} writes [{:#x}, +{})", id, range.address, range.bytes);
  world_.oracle.program_writes(range);
  world_.memory.write(range);
  threads_[id].cost += runtime_->write(range);
}

// Memory goes when nobody reads it any more: Sealane makes the free wait.
Machine::Progress Machine::free_host(uint32_t id, uint64_t address) {
  const auto found = allocated_.find(address);
  if (found == allocated_.end()) return Progress::done;
  const Range range{address, found->second};
  runtime_->freed(range);
  const bool open = !world_.setup.policy.confidential;  // then the driver waits for all
  if (runtime_->busy(range) || (open && !drained(threads_[id].context))) {
    raise_flags(id);
    return Progress::again;
  }
  world_.log("thread {} frees [{:#x}, +{})", id, range.address, range.bytes);
  world_.oracle.program_writes(range);
  world_.memory.write(range);  // whatever comes there next is something else
  world_.oracle.frees(range);
  allocated_.erase(found);
  return Progress::done;
}

// --- what else happens

// No program writes to a source while the call that copies it has not returned.
bool Machine::being_copied(const Range& range) const {
  for (const Thread& thread : threads_) {
    if (!thread.asleep) continue;
    const workload::Operation& operation = program_[thread.operations[thread.next]];
    const auto* copy = std::get_if<workload::Copy>(&operation.action);
    if (copy != nullptr && copy->host.overlaps(range)) return true;
  }
  return false;
}

// Once, also if the operation has to be tried again.
void Machine::follow_script(uint32_t operation) {
  const auto [first, last] = script_.equal_range(operation);
  for (auto fault = first; fault != last; ++fault) {
    switch (fault->second.kind) {
      case ScriptedFault::Kind::rotation:
        for (uint32_t lane = 0; lane < runtime_->channels(); ++lane) runtime_->rotate(lane);
        break;
      case ScriptedFault::Kind::driver_message:
        if (runtime_->channels() > 0) runtime_->driver_message(runtime_->channels() - 1);
        break;
      case ScriptedFault::Kind::worker_stall:
        runtime_->stall_workers(fault->second.stall);
        break;
      default:
        runtime_->tamper_next(fault->second.kind);
        break;
    }
  }
  script_.erase(first, last);
}

void Machine::inject_faults(uint32_t id) {
  if (!world_.setup.policy.carries()) return;
  const Faults& faults = world_.setup.faults;
  SeededRandom& random = world_.random;
  if (runtime_->channels() > 0) {
    const auto lane = static_cast<uint32_t>(random.below(runtime_->channels()));
    if (random.chance(faults.driver_message)) runtime_->driver_message(lane);
    if (random.chance(faults.rotation)) runtime_->rotate(lane);
  }
  if (random.chance(faults.worker_stall)) runtime_->stall_worker();
  if (random.chance(faults.crash)) crash(threads_[id].context);
  if (random.chance(faults.tamper)) runtime_->tamper_next(kTampering[random.below(4)]);
  if (random.chance(faults.guard_write)) {
    const auto planned = runtime_->some_planned(random.next());
    if (planned && !being_copied(*planned)) {
      const uint64_t offset = random.below(planned->bytes);
      write(id, {planned->address + offset, random.between(1, planned->bytes - offset)});
    }
  }
  if (random.chance(faults.free_in_flight)) {
    const auto planned = runtime_->some_planned(random.next());
    if (planned) runtime_->freed(*planned);
    if (planned && !runtime_->busy(*planned)) {
      world_.log("[{:#x}, +{}) is freed and allocated again", planned->address, planned->bytes);
      world_.memory.write(*planned);
      runtime_->allocated(*planned, MemoryKind::pinned);
    }
  }
}

Outcome Machine::outcome() const {
  Outcome result;
  result.elapsed = ended_ - Instant{};
  result.counters = world_.counters;
  result.counters.events = world_.events.popped();
  result.error = world_.error;
  result.timeline = world_.timeline.spans();
  runtime_->count(result.counters);
  if (const auto& broken = world_.oracle.broken()) {
    Violation violation;
    violation.seed = world_.setup.seed;
    violation.rule = broken->rule;
    violation.what = broken->what;
    violation.at = world_.now();
    violation.history.assign(world_.history.begin(), world_.history.end());
    result.violation = std::move(violation);
  }
  return result;
}

namespace {

Setup settled(Setup setup) {
  if (setup.hardware_queues == 0) {
    setup.hardware_queues = static_cast<uint32_t>(setup.platform.gpu.hardware_queues);
  }
  setup.policy = settled_policy(setup);
  return setup;
}

}  // namespace

Outcome simulate(const workload::Program& program, const Setup& setup) {
  const Setup ready = settled(setup);
  return Machine(program, ready).run();
}

Outcome simulate(workload::Feed& feed, const Setup& setup) {
  const Setup ready = settled(setup);
  return Machine(feed, ready).run();
}

}  // namespace sealane::sim
