// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/copy/copies.h"

#include <algorithm>
#include <new>
#include <utility>

namespace sealane {

Copies::Copies(const CopiesOptions& options)
    : options_(options),
      threads_(options.threads),
      streams_(options.rules),
      under_way_(options_, streams_),
      turns_(under_way_, threads_, options_) {}

// --- 1. the program's call

std::optional<CopyThreadId> Copies::missing_thread(const CopyCall& call) const {
  if (!options_.async || captures_ > 0 || !host_side_of(call)) return std::nullopt;
  if (const auto missing = threads_.missing(call, turns_.is_bulk(call))) return missing;
  // Who seals ahead has to see what is swapped out from the first copy on: it may come back.
  const bool sees = turns_.may_be_sealed_ahead(call) && threads_.lacks_bulk(call);
  return sees ? std::optional(threads_.bulk_thread(call)) : std::nullopt;
}

CopyVerdict Copies::choose(std::span<const CopyCall> calls, std::vector<CopyThreadId>& threads) {
  if (!options_.async) return CopyVerdict::passed;
  if (failures_.failed(calls.front().context)) return CopyVerdict::refused;
  if (captures_ > 0 && options_.rules.capture) return CopyVerdict::passed_capture;
  CopyThreads::Load load{};
  uint64_t together = 0;
  const StreamRun& run = streams_[calls.front()];
  for (size_t i = 0; i < calls.size(); ++i) {
    const CopyCall& call = calls[i];
    if (!host_side_of(call)) return CopyVerdict::passed_pageable;
    // What has to wait for the copy before it, or is small enough to travel with it, goes where it
    // goes.
    std::optional<CopyThreadId> wish;
    const CopyCall* before = i > 0 ? &calls[i - 1] : nullptr;
    if (i == 0 && !run.members.empty() && streams_.continues(run, call)) {
      before = &run.members.back().call;
      const bool waits =
          under_way_.contains(run.members.back().copy) && !worth_another_thread(call);
      if (waits) wish = run.members.back().thread;
    }
    const bool goes_on = options_.costs && before != nullptr &&
                         before->direction == call.direction &&
                         before->device_range().end() == call.device_address &&
                         together + call.host.bytes <= options_.costs->bytes_max;
    if (goes_on) wish = i > 0 ? threads.back() : run.members.back().thread;
    together = goes_on ? together + call.host.bytes : call.host.bytes;
    const auto chosen = threads_.choose(call, turns_.is_bulk(call), load, wish);
    if (!chosen) return CopyVerdict::passed_aside;
    threads.push_back(*chosen);
    ++load[CopyThreads::place_of(*chosen)];
  }
  return CopyVerdict::carried;
}

// Who asks for memory here may be refused it, and the program's call must not fail for that.
void Copies::handle_copies(std::span<const CopyCall> calls, CallPlan& plan, Instant now) {
  plan.copies.clear();
  plan.steps.clear();
  plan.done = 0;
  try {
    std::vector<CopyThreadId> threads;
    plan.verdict = choose(calls, threads);
    if (plan.verdict == CopyVerdict::carried) add_all(calls, threads, plan, now);
  } catch (const std::bad_alloc&) {
    for (const CopyId id : plan.copies) withdraw(id, now);
    streams_.handle_work(calls.front().stream, false);  // its event is not in the stream
    plan.copies.clear();
    plan.steps.clear();
    plan.verdict = CopyVerdict::passed;
  }
}

void Copies::add_all(std::span<const CopyCall> calls, const std::vector<CopyThreadId>& threads,
                     CallPlan& plan, Instant now) {
  StreamRun& run = streams_[calls.front()];
  failures_.expect(calls.front().context);
  std::erase_if(run.members,
                [&](const RunMember& member) { return !under_way_.contains(member.copy); });
  if (!streams_.continues(run, calls.front())) {
    const EventKey event = streams_.begin(run, calls.front().legacy);
    plan.steps.push_back(RecordEvent{calls.front().stream, event});
  }
  plan.copies.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) add(calls[i], threads[i], plan, now);
  put_gates(calls.front().stream, plan);
  // Among themselves the copies of a call have no order: they join the run together.
  for (const CopyId id : plan.copies) {
    const Carried& copy = under_way_[id];
    run.members.push_back({id, copy.call, copy.thread});
  }
  run.touched = false;
}

void Copies::add(const CopyCall& call, CopyThreadId thread, CallPlan& plan, Instant now) {
  const CopyId id = ++last_id_;
  const bool early = !options_.rules.read_at_turn && call.direction == Direction::to_device;
  const HostSide side = early ? HostSide::snapshot : *host_side_of(call);
  if (side == HostSide::snapshot && options_.rules.snapshot) {
    plan.steps.insert(plan.steps.begin(), TakeSnapshot{id});
  }
  const EventKey after = streams_[call].before;
  under_way_.add(id, Carried{.call = call,
                             .side = side,
                             .thread = thread,
                             .after = after,
                             .behind = streams_.find_behind(call, thread, last_of(thread, plan))});
  plan.copies.push_back(id);
  streams_.hold(after);
  under_way_[id].call.alone = threads_.bulk_pending(call.device) == 0;
  ++threads_[thread].streams[call.stream];
  threads_[thread].queue.push_back(id);
  turns_.handle_added(id, now);
}

// Of the call, so far.
CopyId Copies::last_of(CopyThreadId thread, const CallPlan& plan) const {
  const auto found = std::find_if(plan.copies.rbegin(), plan.copies.rend(),
                                  [&](CopyId other) { return under_way_[other].thread == thread; });
  return found != plan.copies.rend() ? *found : kNoCopy;
}

// Behind the last copy that a thread has of the call, and only there.
void Copies::put_gates(StreamKey stream, CallPlan& plan) {
  if (!options_.rules.gate) return;
  std::array<CopyId, kThreadsPerDevice> last{};
  for (const CopyId id : plan.copies) {
    last[CopyThreads::place_of(under_way_[id].thread)] = id;
  }
  for (uint32_t place = 0; place < kThreadsPerDevice; ++place) {
    if (last[place] == kNoCopy) continue;
    Carried& copy = under_way_[last[place]];
    copy.gate = StreamRuns::next_value(streams_[copy.call].words[place]);
    plan.steps.push_back(PutGate{stream, copy.thread, copy.gate});
  }
}

void Copies::handle_put(const CallPlan& plan) {
  for (const CopyId id : plan.copies) under_way_[id].put = true;
}

// A gate that is in the stream has to open: what it stands for is carried. No copy of a batch
// changes what another one reads, so the driver may do those once more.
bool Copies::handle_refused(CallPlan& plan, Instant now) {
  std::array<bool, kThreadsPerDevice> gated{};
  for (size_t i = 0; i < plan.done; ++i) {
    const auto* gate = std::get_if<PutGate>(&plan.steps[i]);
    if (gate != nullptr) gated[CopyThreads::place_of(gate->thread)] = true;
  }
  StreamRun& run = streams_[under_way_[plan.copies.front()].call];
  bool any = false;
  for (const CopyId id : plan.copies) {
    Carried& copy = under_way_[id];
    if (gated[CopyThreads::place_of(copy.thread)]) {
      any = copy.put = true;
      continue;
    }
    withdraw(id, now);
  }
  run.touched = true;  // its event may not be in the stream; the driver's own copy follows
  plan.verdict = CopyVerdict::passed;
  return any;
}

void Copies::withdraw(CopyId id, Instant now) {
  const Carried& copy = under_way_[id];
  if (copy.ahead != nullptr) copy.ahead->handle_over(id, false, now);
  std::erase_if(streams_[copy.call].members,
                [&](const RunMember& member) { return member.copy == id; });
  remove(id);
}

void Copies::handle_context_gone(ContextKey context) {
  failures_.forget(context);
  threads_.handle_room();
}

bool Copies::busy(const Range& range) const {
  if (!options_.rules.freed_range) return false;
  bool read = false;
  threads_.each_ahead([&](const Speculation& ahead) { read = read || ahead.reads(range); });
  return read || touched(range);
}

// --- 3. and 4. copy threads

// A copy behind work that failed does not happen, as in CUDA.
void Copies::handle_reached(EventKey event, ErrorCode code) {
  const auto context = streams_.handle_reached(event);
  if (!context || code == 0) return;
  failures_.fail(*context, code);
  failures_.finish(*context);  // the driver says so itself
}

const Crossing* Copies::take(CopyThreadId id, Instant now) {
  CopyThread& thread = threads_[id];
  if (!thread.crossing.copies.empty() || thread.crossing.pads > 0) return nullptr;
  if (failures_.any() && options_.rules.deliver_after_failure) {
    if (const Crossing* dropped = take_dropped(thread)) return dropped;
  }
  const bool by_turns = thread.ahead != nullptr && !thread.ahead->stopped();
  if (by_turns && !turns_.tell_turns(thread, now)) return turns_.take(thread, now);
  const Crossing* first = take_first(thread);
  return first != nullptr || CopyThreads::is_bulk(id) ? first : take_early(id);
}

// Of a context that has failed nothing is handed over: its gates open, and that is all.
const Crossing* Copies::take_dropped(CopyThread& thread) {
  for (const CopyId id : thread.queue) {
    const Carried& copy = under_way_[id];
    if (!failures_.failed(copy.call.context) || !under_way_.may_go(copy)) continue;
    thread.crossing = {.copies = CopyList(id), .bytes = copy.call.host.bytes, .dropped = true};
    return &thread.crossing;
  }
  return nullptr;
}

const Crossing* Copies::take_first(CopyThread& thread) {
  for (size_t i = 0; i < thread.queue.size(); ++i) {
    const Carried& copy = under_way_[thread.queue[i]];
    if (!under_way_.may_go(copy)) continue;
    thread.crossing = {.copies = CopyList(thread.queue[i]), .bytes = copy.call.host.bytes};
    if (options_.costs) gather(under_way_, thread, i, *options_.costs);
    together_ += thread.crossing.copies.size() - 1;
    return &thread.crossing;
  }
  return nullptr;
}

bool Copies::allows_early(const CopyCall& call) const {
  const bool read_already = host_side_of(call) == HostSide::snapshot;
  return call.host.bytes <= options_.early_bytes_max && (read_already || options_.early_in_place);
}

// Behind one of its stream it could cross early there. Small ones wait for each other instead,
// where they may travel together.
bool Copies::worth_another_thread(const CopyCall& call) const {
  const uint64_t together = options_.costs ? options_.costs->bytes_max : 0;
  return call.host.bytes > together && allows_early(call) && !turns_.is_bulk(call);
}

// Behind copies that other threads have in the driver now. Those on bulk threads cross by turns,
// and others may come between: nobody waits for them here, nor for what is longer than what may
// cross early itself. What will travel with others behind it waits for its turn: alone it would
// save them nothing, and pay a toll of its own.
const Crossing* Copies::take_early(CopyThreadId thread_id) {
  if (!threads_.may_wait(thread_id, [&](CopyThreadId id) { return !may_land(id); })) return nullptr;
  CopyThread& thread = threads_[thread_id];
  const auto crossing_of = [&](CopyThreadId other, CopyId id) -> const Crossing* {
    const Crossing& theirs = threads_[other].crossing;
    const bool under_way =
        !CopyThreads::is_bulk(other) && !theirs.dropped && theirs.bytes <= options_.early_bytes_max;
    const bool has_it =
        std::find(theirs.copies.begin(), theirs.copies.end(), id) != theirs.copies.end();
    return under_way && has_it ? &theirs : nullptr;
  };
  for (size_t i = 0; i < thread.queue.size(); ++i) {
    const CopyId id = thread.queue[i];
    const Carried& copy = under_way_[id];
    if (!allows_early(copy.call)) continue;
    if (failures_.failed(copy.call.context)) continue;  // dropped, when its turn has come
    if (!under_way_.may_cross_early(copy, crossing_of)) continue;
    if (options_.costs && has_company(under_way_, thread, i, *options_.costs)) continue;
    thread.crossing = {.copies = CopyList(id),
                       .bytes = copy.call.host.bytes,
                       .early = true,
                       .between = !copy.arrives_in_ours()};
    return &thread.crossing;
  }
  return nullptr;
}

bool Copies::may_land(CopyThreadId id) const {
  const Crossing& crossing = threads_.crossing_of(id);
  return !crossing.early || under_way_.may_go(under_way_[crossing.copies.front()]);
}

const Crossing* Copies::take_late(CopyThreadId id) {
  CopyThread& thread = threads_[id];
  thread.crosses_early = false;
  Crossing& crossing = thread.crossing;
  crossing.early = crossing.between = false;
  crossing.dropped = failures_.failed(under_way_[crossing.copies.front()].call.context) &&
                     options_.rules.deliver_after_failure;
  return &crossing;
}

const Crossing* Copies::take_alone(CopyThreadId id) {
  Crossing& crossing = threads_[id].crossing;
  const CopyId first = crossing.copies.front();
  together_ -= crossing.copies.size() - 1;
  crossing = {.copies = CopyList(first), .bytes = under_way_[first].call.host.bytes};
  return &crossing;
}

// --- 5. endings

void Copies::handle_crossed(CopyThreadId id, ErrorCode code, std::vector<Ending>& out) {
  out.clear();
  Crossing& crossing = threads_[id].crossing;
  if (code != 0) crossing.last = true;
  if (!crossing.last) return;
  // Several are of one stream, whose word only grows: the last gate opens all.
  CopyId gated = kNoCopy;
  for (const CopyId copy : crossing.copies) {
    if (under_way_[copy].gate != 0) gated = copy;
  }
  for (const CopyId copy : crossing.copies) {
    if (copy != gated) under_way_[copy].gate = 0;
  }
  if (code == 0 && begin_delivery(crossing, out)) return;
  end_all(crossing, code, out);
}

// All of a crossing are of one context. No gate opens before all of them are where they belong.
bool Copies::begin_delivery(Crossing& crossing, std::vector<Ending>& out) {
  for (const CopyId id : crossing.copies) {
    Carried& copy = under_way_[id];
    if (!crossing.early && !copy.arrives_in_ours()) continue;
    const bool failed = failures_.failed(copy.call.context);
    if (crossing.dropped || (failed && options_.rules.deliver_after_failure)) continue;
    if (!options_.rules.verify_before_use && copy.arrives_in_ours()) {
      open_gate(id, out);
      copy.gate = 0;
    }
    out.push_back(Deliver{id});
    crossing.delivered = true;
  }
  return crossing.delivered;
}

void Copies::handle_delivered(CopyThreadId id, std::vector<Ending>& out, ErrorCode code) {
  out.clear();
  Crossing& crossing = threads_[id].crossing;
  if (crossing.delivered) end_all(crossing, code, out);
}

// Whoever hears from the driver that the context has failed, or is let through a gate, may look at
// any of the destinations: all are wiped before.
void Copies::end_all(Crossing& crossing, ErrorCode code, std::vector<Ending>& out) {
  const bool failed =
      code != 0 || failures_.failed(under_way_[crossing.copies.front()].call.context);
  for (const CopyId copy : crossing.copies) {
    if (failed && was_written(crossing, copy, code)) out.push_back(Wipe{copy});
  }
  for (const CopyId copy : crossing.copies) {
    failed ? end_failed(copy, crossing, code, out) : end_landed(copy, out);
  }
}

bool Copies::was_written(const Crossing& crossing, CopyId id, ErrorCode code) const {
  const Carried& copy = under_way_[id];
  if (!options_.rules.wipe || (code == 0 && !options_.rules.deliver_after_failure)) return false;
  const bool written = copy.call.direction == Direction::to_host && !crossing.dropped;
  const bool direct = copy.side == HostSide::in_place && !crossing.early;
  return written && (direct || crossing.delivered);
}

void Copies::end_landed(CopyId id, std::vector<Ending>& out) {
  open_gate(id, out);
  if (under_way_[id].side != HostSide::in_place) out.push_back(GiveBack{id});
}

// `code` 0: it is not the copy that failed, but its context, before or meanwhile.
void Copies::end_failed(CopyId id, Crossing& crossing, ErrorCode code, std::vector<Ending>& out) {
  const Carried& copy = under_way_[id];
  if (code == 0 && !options_.rules.deliver_after_failure) return end_landed(id, out);
  if (!options_.rules.run_behind_forgery) open_gate(id, out);
  const ContextKey context = copy.call.context;
  if (code != 0) failures_.fail(context, code);
  const bool driver_knows = failures_.final(context) || !options_.rules.fail_first;
  if (id == crossing.copies.front() && (code != 0 || !driver_knows)) {
    out.push_back(FailContext{context, failures_.of(context)});
    crossing.fails_context = true;
  }
  if (options_.rules.run_behind_forgery) open_gate(id, out);
  if (copy.side != HostSide::in_place) out.push_back(GiveBack{id});
}

void Copies::open_gate(CopyId id, std::vector<Ending>& out) {
  const Carried& copy = under_way_[id];
  if (copy.gate != 0) out.push_back(OpenGate{copy.call.stream, copy.thread, copy.gate});
}

void Copies::handle_ended(CopyThreadId id, Instant now) {
  CopyThread& thread = threads_[id];
  const Crossing crossing = std::exchange(thread.crossing, {});
  if (!crossing.last) return;
  if (crossing.fails_context) {
    failures_.finish(under_way_[crossing.copies.front()].call.context);
  }
  for (const CopyId copy : crossing.copies) {
    const Carried& over = under_way_[copy];
    const bool failed = failures_.failed(over.call.context);
    if (over.ahead != nullptr) over.ahead->handle_over(copy, !failed, now);
    remove(copy);
  }
}

void Copies::remove(CopyId id) {
  const Carried& copy = under_way_[id];
  threads_[copy.thread].drop(id, copy.call.stream);
  streams_.release(copy.after);
  under_way_.erase(id);
}

}  // namespace sealane
