// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/machine.h"

#include <map>
#include <numeric>
#include <utility>
#include <variant>

namespace sealane::sim {
namespace {

constexpr Duration kRetry{5'000};

double in_ms(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

// What a thread's call is called in a timeline.
const char* name_of(const workload::Action& action) {
  if (const auto* copy = std::get_if<workload::Copy>(&action)) {
    return copy->direction == Direction::to_device ? "copy to device" : "copy to host";
  }
  if (std::holds_alternative<workload::Launch>(action)) return "launch";
  const bool waits = std::holds_alternative<workload::SyncStream>(action) ||
                     std::holds_alternative<workload::SyncEvent>(action) ||
                     std::holds_alternative<workload::SyncContext>(action);
  return waits ? "synchronise" : "call";
}

}  // namespace

Machine::Machine(const workload::Program& program, const Setup& setup)
    : world_(setup), program_(program), patience_(setup) {
  std::map<workload::ThreadId, uint32_t> keys;
  for (uint32_t i = 0; i < program.size(); ++i) {
    const auto [found, added] =
        keys.emplace(program[i].thread, static_cast<uint32_t>(threads_.size()));
    if (added) threads_.emplace_back().id = found->second;
    threads_[found->second].operations.push_back(i);
    patience_.allow(program[i], setup);
  }
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
  calls_.emplace(world_, *runtime_, *driver_, program_);
  faults_.emplace(world_, *runtime_, *calls_, *this);
  world_.cpu_writes = [this](const Range& range) { runtime_->write(range); };
  world_.device.on_work([this](const Item& item) { calls_->do_work(item); });
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
    case EventKind::put:
      runtime_->put(event.b);
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
  Caller& thread = threads_[id];
  if (thread.next == thread.operations.size() && feed_ != nullptr) write_more(thread);
  const bool over = thread.next == thread.operations.size();
  if (!over) calls_->enter_context(thread, program_[thread.operations[thread.next]].action);
  if (over || calls_->failed(thread.context)) {
    calls_->raise_flags(thread);
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
  faults_->follow_script(thread.operations[thread.next]);
  faults_->by_chance(thread, [this](const Range& range) { return being_copied(range); });
  switch (calls_->perform(thread, operation)) {
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
void Machine::write_more(Caller& thread) {
  written_.clear();
  bool more = true;
  while (written_.empty() && more) more = feed_->extend(world_.now(), written_);
  if (!more) feed_ = nullptr;
  for (const workload::Operation& operation : written_) patience_.allow(operation, world_.setup);
  thread.operations.resize(written_.size());
  std::iota(thread.operations.begin(), thread.operations.end(), 0);
  thread.next = 0;
}

void Machine::wake(uint32_t id) {
  Caller& thread = threads_[id];
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

void Machine::finish_call(uint32_t id) {
  Caller& thread = threads_[id];
  if (!calls_->failed(thread.context)) {
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

bool Machine::being_copied(const Range& range) const {
  for (const Caller& thread : threads_) {
    if (!thread.asleep) continue;
    const workload::Operation& operation = program_[thread.operations[thread.next]];
    const auto* copy = std::get_if<workload::Copy>(&operation.action);
    if (copy != nullptr && copy->host.overlaps(range)) return true;
  }
  return false;
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
