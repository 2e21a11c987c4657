// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/copy/copies.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace sealane {
namespace {

constexpr size_t kLookMax = 64;  // copies looked at for some that may travel together

}  // namespace

Copies::Copies(const CopiesOptions& options)
    : options_(options), threads_(options.threads), streams_(options.rules) {}

// --- 1. the program's call

std::optional<CopyThreadId> Copies::missing_thread(const CopyCall& call) const {
  if (!options_.async || captures_ > 0 || !host_side(call)) return std::nullopt;
  if (const auto missing = threads_.missing(call, is_bulk(call))) return missing;
  // Who seals ahead has to see what is swapped out from the first copy on: it may come back.
  const bool sees = may_be_sealed_ahead(call) && threads_.lacks_bulk(call);
  return sees ? std::optional(threads_.bulk_thread(call)) : std::nullopt;
}

// Registered memory is not ours to look at before its turn, and of what others than the CPU can
// write no guard knows what it holds.
bool Copies::may_be_sealed_ahead(const CopyCall& call) const {
  return options_.threads.bulk > 0 && call.host.bytes >= options_.bulk_bytes_min &&
         call.memory != HostKind::registered && (!call.unseen || !options_.rules.unseen_writer);
}

bool Copies::is_bulk(const CopyCall& call) const {
  return call.direction == Direction::to_device && may_be_sealed_ahead(call);
}

// Nothing: the call has to wait for it, which the driver does better.
std::optional<HostSide> Copies::host_side(const CopyCall& call) const {
  const bool inward = call.direction == Direction::to_device;
  if (call.read_now) return inward ? std::optional(HostSide::snapshot) : std::nullopt;
  if (call.memory == HostKind::pinned) return HostSide::in_place;
  if (call.memory == HostKind::registered) return HostSide::at_turn;
  return inward ? std::optional(HostSide::snapshot) : std::nullopt;
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
    if (!host_side(call)) return CopyVerdict::passed_pageable;
    // What continues the copy before it, and is small enough to travel with it, goes where it goes.
    std::optional<CopyThreadId> wish;
    const CopyCall* before = i > 0 ? &calls[i - 1] : nullptr;
    if (i == 0 && !run.members.empty() && streams_.continues(run, call)) {
      before = &run.members.back().call;
    }
    const bool goes_on = options_.costs && before != nullptr &&
                         before->direction == call.direction &&
                         before->device_range().end() == call.device_address &&
                         together + call.host.bytes <= options_.costs->bytes_max;
    if (goes_on) wish = i > 0 ? threads.back() : run.members.back().thread;
    together = goes_on ? together + call.host.bytes : call.host.bytes;
    const auto chosen = threads_.choose(call, is_bulk(call), load, wish);
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
  std::erase_if(run.members, [&](const RunMember& member) { return landed(member.copy); });
  if (!streams_.continues(run, calls.front())) {
    const EventKey event = streams_.begin(run, calls.front().legacy);
    plan.steps.push_back(RecordEvent{calls.front().stream, event});
  }
  plan.copies.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) add(calls[i], threads[i], plan, now);
  put_gates(calls.front().stream, plan);
  // Among themselves the copies of a call have no order: they join the run together.
  for (const CopyId id : plan.copies) {
    const Carried& copy = under_way_.at(id);
    run.members.push_back({id, copy.call, copy.thread});
  }
  run.touched = false;
  stats_.carried += calls.size();
}

void Copies::add(const CopyCall& call, CopyThreadId thread, CallPlan& plan, Instant now) {
  const CopyId id = ++last_id_;
  const bool early = !options_.rules.read_at_turn && call.direction == Direction::to_device;
  const HostSide side = early ? HostSide::snapshot : *host_side(call);
  if (side == HostSide::snapshot && options_.rules.snapshot) {
    plan.steps.insert(plan.steps.begin(), TakeSnapshot{id});
  }
  const EventKey after = streams_[call].before;
  under_way_.emplace(id, Carried{.call = call,
                                 .side = side,
                                 .thread = thread,
                                 .after = after,
                                 .behind = find_behind(call, thread, plan)});
  plan.copies.push_back(id);
  streams_.hold(after);
  threads_[thread].queue.push_back(id);
  claim(id, now);
}

// What it must not overtake.
std::vector<CopyId> Copies::find_behind(const CopyCall& call, CopyThreadId thread,
                                        const CallPlan& plan) const {
  std::vector<CopyId> behind;
  CopyId last_of_thread = kNoCopy;
  for (const RunMember& member : streams_.of(call).members) {
    if (member.thread == thread) {
      last_of_thread = member.copy;
      if (options_.rules.gate_order) continue;
    }
    if (options_.rules.hazard && !may_pass(call, member.call)) behind.push_back(member.copy);
  }
  for (const CopyId other : plan.copies) {
    if (under_way_.at(other).thread == thread) last_of_thread = other;
  }
  if (last_of_thread != kNoCopy && options_.rules.gate_order) behind.push_back(last_of_thread);
  return behind;
}

// A source that is read in place may change until the copy's turn: what was sealed from it is
// claimed then.
void Copies::claim(CopyId id, Instant now) {
  Carried& copy = under_way_.at(id);
  const bool outward = copy.call.direction == Direction::to_host;
  const bool now_or_never =
      outward || copy.side == HostSide::snapshot || !options_.rules.stale_at_turn;
  Speculation* const ahead = outward ? threads_.ahead_of(copy.call) : threads_[copy.thread].ahead;
  const bool bulk = ahead != nullptr && copy.call.host.bytes >= options_.bulk_bytes_min;
  if (!bulk || !now_or_never) return;
  if (ahead->handle_asked(id, copy.call, copy.side, now)) copy.ahead = ahead;
}

// Behind the last copy that a thread has of the call, and only there.
void Copies::put_gates(StreamKey stream, CallPlan& plan) {
  if (!options_.rules.gate) return;
  std::array<CopyId, kThreadsPerDevice> last{};
  for (const CopyId id : plan.copies) {
    last[CopyThreads::place_of(under_way_.at(id).thread)] = id;
  }
  for (uint32_t place = 0; place < kThreadsPerDevice; ++place) {
    if (last[place] == kNoCopy) continue;
    Carried& copy = under_way_.at(last[place]);
    copy.gate = StreamRuns::next_value(streams_[copy.call].words[place]);
    plan.steps.push_back(PutGate{stream, copy.thread, copy.gate});
  }
}

void Copies::handle_put(const CallPlan& plan) {
  for (const CopyId id : plan.copies) under_way_.at(id).put = true;
}

// A gate that is in the stream has to open: what it stands for is carried. No copy of a batch
// changes what another one reads, so the driver may do those once more.
bool Copies::handle_refused(CallPlan& plan, Instant now) {
  std::array<bool, kThreadsPerDevice> gated{};
  for (size_t i = 0; i < plan.done; ++i) {
    const auto* gate = std::get_if<PutGate>(&plan.steps[i]);
    if (gate != nullptr) gated[CopyThreads::place_of(gate->thread)] = true;
  }
  StreamRun& run = streams_[under_way_.at(plan.copies.front()).call];
  bool any = false;
  for (const CopyId id : plan.copies) {
    Carried& copy = under_way_.at(id);
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
  const Carried& copy = under_way_.at(id);
  if (copy.ahead != nullptr) copy.ahead->handle_over(id, false, now);
  std::erase_if(streams_[copy.call].members,
                [&](const RunMember& member) { return member.copy == id; });
  remove(id);
}

void Copies::handle_context_gone(ContextKey context) {
  failures_.forget(context);
  streams_.forget_context(context);
  threads_.handle_room();
}

void Copies::handle_freed(const Range& range, Instant now) {
  threads_.each_ahead([&](Speculation& ahead) { ahead.handle_freed(range, now); });
}

bool Copies::busy(const Range& range) const {
  if (!options_.rules.freed_range) return false;
  bool read = false;
  threads_.each_ahead([&](const Speculation& ahead) { read = read || ahead.reads(range); });
  return read || touched(range);
}

bool Copies::touched(const Range& range) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const auto& entry) {
    const CopyCall& call = entry.second.call;
    const bool reaches_host = entry.second.side != HostSide::snapshot;
    return range.overlaps(call.device_range()) || (reaches_host && range.overlaps(call.host));
  });
}

bool Copies::idle(ContextKey context) const {
  return std::none_of(under_way_.begin(), under_way_.end(),
                      [&](const auto& entry) { return entry.second.call.context == context; });
}

// --- 3. and 4. copy threads

bool Copies::may_go(const Carried& copy) const {
  if (!copy.put) return false;
  if (options_.rules.order && !streams_.reached(copy.after)) return false;
  return std::all_of(copy.behind.begin(), copy.behind.end(),
                     [&](CopyId other) { return landed(other); });
}

void Copies::awaited(CopyThreadId thread, std::vector<EventKey>& out) const {
  out.clear();
  if (threads_.pending(thread) == 0) return;
  for (const CopyId id : threads_.queue_of(thread)) {
    const Carried& copy = under_way_.at(id);
    const EventKey event = copy.after;
    if (!copy.put || streams_.reached(event)) continue;
    if (std::find(out.begin(), out.end(), event) != out.end()) continue;
    out.push_back(event);
    if (out.size() == kToldMax) return;
  }
}

// A copy behind work that failed does not happen, as in CUDA.
void Copies::handle_reached(EventKey event, ErrorCode code) {
  const auto context = streams_.handle_reached(event);
  if (!context || code == 0) return;
  failures_.fail(*context, code);
  failures_.finish(*context);  // the driver says so itself
}

void Copies::at_turn(CopyThreadId thread, std::vector<CopyId>& out) {
  out.clear();
  if (threads_.pending(thread) == 0 || !CopyThreads::is_bulk(thread)) return;
  for (const CopyId id : threads_.queue_of(thread)) {
    Carried& copy = under_way_.at(id);
    if (copy.looked || copy.ahead != nullptr || copy.side != HostSide::in_place) continue;
    if (!may_go(copy)) continue;
    copy.looked = true;
    out.push_back(id);
    if (out.size() == kToldMax) return;
  }
}

const Crossing* Copies::take(CopyThreadId id, Instant now) {
  CopyThread& thread = threads_[id];
  if (!thread.crossing.copies.empty() || thread.crossing.pads > 0) return nullptr;
  if (failures_.any() && options_.rules.deliver_after_failure) {
    if (const Crossing* dropped = take_dropped(thread)) return dropped;
  }
  const bool by_turns = thread.ahead != nullptr && !thread.ahead->stopped();
  return by_turns ? take_turn(thread, now) : take_first(thread);
}

// Of a context that has failed nothing is handed over: its gates open, and that is all.
const Crossing* Copies::take_dropped(CopyThread& thread) {
  for (const CopyId id : thread.queue) {
    const Carried& copy = under_way_.at(id);
    if (!failures_.failed(copy.call.context) || !may_go(copy)) continue;
    thread.crossing = {.copies = CopyList(id), .bytes = copy.call.host.bytes, .dropped = true};
    return &thread.crossing;
  }
  return nullptr;
}

// Which of those that may go goes first, in how many parts, and what must be sent in between to
// keep the positions of what is sealed already, is decided behind the door.
const Crossing* Copies::take_turn(CopyThread& thread, Instant now) {
  // All are asked for before the first has its turn, behind which others are begun: not these.
  for (const CopyId id : thread.queue) {
    Carried& copy = under_way_.at(id);
    if (copy.ahead != nullptr || copy.side != HostSide::in_place || !copy.looked) continue;
    if (thread.ahead->handle_asked(id, copy.call, copy.side, now)) copy.ahead = thread.ahead;
  }
  for (const CopyId id : thread.queue) {
    Carried& copy = under_way_.at(id);
    if (copy.told || !may_go(copy)) continue;
    if (copy.ahead == nullptr) {
      if (copy.side == HostSide::in_place && !copy.looked) continue;  // its turn came just now
      return take_first(thread);
    }
    copy.told = true;
    copy.ahead->handle_turn(id, now);
  }
  const auto turn = thread.ahead->next_turn(now);
  if (!turn) return nullptr;
  thread.crossing = {.offset = turn->offset, .bytes = turn->bytes, .pads = turn->pads};
  if (turn->copy == kNoCopy) {
    thread.crossing.last = false;
    return &thread.crossing;
  }
  Carried& copy = under_way_.at(turn->copy);
  copy.crossed += turn->bytes;
  thread.crossing.copies = CopyList(turn->copy);
  thread.crossing.last = copy.crossed >= copy.call.host.bytes;
  return &thread.crossing;
}

const Crossing* Copies::take_first(CopyThread& thread) {
  for (size_t i = 0; i < thread.queue.size(); ++i) {
    const Carried& copy = under_way_.at(thread.queue[i]);
    if (!may_go(copy)) continue;
    thread.crossing = {.copies = CopyList(thread.queue[i]), .bytes = copy.call.host.bytes};
    gather(thread, i);
    ++stats_.crossings;
    stats_.together += thread.crossing.copies.size() - 1;
    return &thread.crossing;
  }
  return nullptr;
}

// With the copy whose turn it is those that wait behind it, if all they must not overtake has ended
// or travels before them.
void Copies::gather(CopyThread& thread, size_t first) {
  const Carried& leader = under_way_.at(thread.queue[first]);
  if (!options_.costs || leader.call.host.bytes > options_.costs->bytes_max) return;
  Crossing& crossing = thread.crossing;
  Gathering group(*options_.costs);
  group.begin(leader.call.place(), leader.call.device_address);
  const size_t end = std::min(thread.queue.size(), first + kLookMax);
  for (size_t i = first + 1; i < end && !crossing.copies.full(); ++i) {
    const Carried& copy = under_way_.at(thread.queue[i]);
    if (!copy.put || copy.after != leader.after) continue;
    const bool free = std::all_of(copy.behind.begin(), copy.behind.end(), [&](CopyId other) {
      return landed(other) || std::find(crossing.copies.begin(), crossing.copies.end(), other) !=
                                  crossing.copies.end();
    });
    if (!free || !group.admit(copy.call.place(), copy.call.device_address)) continue;
    crossing.copies.push_back(thread.queue[i]);
    crossing.bytes += copy.call.host.bytes;
  }
  if (crossing.copies.size() > 1) crossing.together = group;
}

const Crossing* Copies::take_alone(CopyThreadId id) {
  Crossing& crossing = threads_[id].crossing;
  const CopyId first = crossing.copies.front();
  stats_.together -= crossing.copies.size() - 1;
  crossing = {.copies = CopyList(first), .bytes = under_way_.at(first).call.host.bytes};
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
    if (under_way_.at(copy).gate != 0) gated = copy;
  }
  for (const CopyId copy : crossing.copies) {
    if (copy != gated) under_way_.at(copy).gate = 0;
  }
  if (code == 0 && begin_delivery(crossing, out)) return;
  end_all(crossing, code, out);
}

// All of a crossing are of one context. No gate opens before all of them are where they belong.
bool Copies::begin_delivery(Crossing& crossing, std::vector<Ending>& out) {
  for (const CopyId id : crossing.copies) {
    Carried& copy = under_way_.at(id);
    if (copy.side != HostSide::at_turn || copy.call.direction != Direction::to_host) continue;
    const bool failed = failures_.failed(copy.call.context);
    if (crossing.dropped || (failed && options_.rules.deliver_after_failure)) continue;
    if (!options_.rules.verify_before_use) {
      open_gate(id, out);
      copy.gate = 0;
    }
    out.push_back(Deliver{id});
    crossing.delivered = true;
  }
  return crossing.delivered;
}

void Copies::handle_delivered(CopyThreadId id, std::vector<Ending>& out) {
  out.clear();
  Crossing& crossing = threads_[id].crossing;
  if (crossing.delivered) end_all(crossing, 0, out);
}

void Copies::end_all(Crossing& crossing, ErrorCode code, std::vector<Ending>& out) {
  for (const CopyId copy : crossing.copies) {
    const bool failed = code != 0 || failures_.failed(under_way_.at(copy).call.context);
    failed ? end_failed(copy, crossing, code, out) : end_landed(copy, out);
  }
}

void Copies::end_landed(CopyId id, std::vector<Ending>& out) {
  open_gate(id, out);
  if (under_way_.at(id).side != HostSide::in_place) out.push_back(GiveBack{id});
}

// `code` 0: it is not the copy that failed, but its context, before or meanwhile.
void Copies::end_failed(CopyId id, Crossing& crossing, ErrorCode code, std::vector<Ending>& out) {
  const Carried& copy = under_way_.at(id);
  if (code == 0 && !options_.rules.deliver_after_failure) return end_landed(id, out);
  const bool written = copy.call.direction == Direction::to_host && !crossing.dropped;
  if (!options_.rules.run_behind_forgery) open_gate(id, out);
  const bool seen = written && (copy.side == HostSide::in_place || crossing.delivered);
  if (seen && options_.rules.wipe) out.push_back(Wipe{id});
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
  const Carried& copy = under_way_.at(id);
  if (copy.gate != 0) out.push_back(OpenGate{copy.call.stream, copy.thread, copy.gate});
}

void Copies::handle_ended(CopyThreadId id, Instant now) {
  CopyThread& thread = threads_[id];
  const Crossing crossing = std::exchange(thread.crossing, {});
  if (!crossing.last) return;
  if (crossing.fails_context) {
    failures_.finish(under_way_.at(crossing.copies.front()).call.context);
  }
  for (const CopyId copy : crossing.copies) {
    const Carried& over = under_way_.at(copy);
    const bool failed = failures_.failed(over.call.context);
    if (over.ahead != nullptr) over.ahead->handle_over(copy, !failed, now);
    remove(copy);
  }
}

void Copies::remove(CopyId id) {
  const Carried& copy = under_way_.at(id);
  std::erase(threads_[copy.thread].queue, id);
  streams_.release(copy.after);
  under_way_.erase(id);
}

bool Copies::may_run(ContextKey context) const {
  return !failures_.failed(context) || !options_.rules.run_behind_forgery;
}

}  // namespace sealane
