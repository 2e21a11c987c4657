// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace sealane::sim {
namespace {

constexpr uint64_t kMessage = 1_MiB;

}  // namespace

// --- the program

void Oracle::describe(uint32_t stream, uint32_t context, workload::StreamKind kind) {
  if (streams_.size() <= stream) streams_.resize(stream + 1);
  streams_[stream].context = context;
  streams_[stream].kind = kind;
}

// The legacy stream waits for the blocking ones of its context, and they for it.
CallId Oracle::add(Call call) {
  using workload::StreamKind;
  const auto id = static_cast<CallId>(calls_.size());
  if (streams_.size() <= call.stream) streams_.resize(call.stream + 1);
  const Stream on = streams_[call.stream];
  const StreamKind other =
      on.kind == StreamKind::legacy ? StreamKind::blocking : StreamKind::legacy;
  for (const Stream& stream : streams_) {
    if (on.kind == StreamKind::non_blocking || stream.kind != other) continue;
    if (stream.context == on.context && stream.last != kNoCall) call.also.push_back(stream.last);
  }
  call.before = std::exchange(streams_[call.stream].last, id);
  calls_.push_back(std::move(call));
  covered_.push_back(false);
  return id;
}

CallId Oracle::call(CallKind kind, uint32_t stream, CallId waits_for) {
  Call call;
  call.kind = kind;
  call.stream = stream;
  call.waits_for = waits_for;
  call.opened = true;
  return add(std::move(call));
}

CallId Oracle::call_copy(uint32_t stream, const CopyFacts& facts) {
  Call call;
  call.kind = CallKind::copy;
  call.stream = stream;
  call.copy = facts;
  call.opened = facts.direction == Direction::to_device;
  if (call.opened) expect(call);
  allocates(facts.host);  // or the copy could not have been asked for
  const CallId id = add(std::move(call));
  (facts.direction == Direction::to_device ? sources_ : targets_).push_back(id);
  return id;
}

void Oracle::expect(Call& call) {
  const Range& host = call.copy.host;
  call.whole = memory_.fingerprint(host);
  call.contents.clear();
  for (uint64_t offset = 0; offset < host.bytes; offset += kMessage) {
    const Range part{host.address + offset, std::min(kMessage, host.bytes - offset)};
    call.contents.push_back(memory_.fingerprint(part));
  }
}

void Oracle::program_writes(const Range& range) { disturb(range); }

// Before its turn a source may change, and the copy must carry what it holds then. Whoever changes
// it later has a race; so has who changes it while only copies are before it, for their end is
// nothing that he could know of without waiting for it. Those copies themselves come before it.
void Oracle::disturb(const Range& range, CallId writer) {
  for (const CallId id : sources_) {
    Call& call = calls_[id];
    if (!call.copy.stable_source || !call.copy.host.overlaps(range)) continue;
    if (only_copies_before(call, writer)) call.racy = true;
  }
}

void Oracle::frees(const Range& range) {
  mapped_.write(range, kUnmapped);
  const auto touches = [&](CallId id) {
    const Call& call = calls_[id];
    const bool lost = has_failed(id) || has_stopped(id);
    return call.copy.stable_source && !lost && call.copy.host.overlaps(range);
  };
  for (const CallId id : sources_) {
    if (!touches(id)) continue;
    violate("freed-range", fmt::format("the source of copy {} was freed before it was read", id));
  }
  for (const CallId id : targets_) {
    if (!touches(id)) continue;
    violate("freed-range", fmt::format("memory was freed before copy {} was there", id));
  }
}

CallId Oracle::last_call(uint32_t stream) const {
  return stream < streams_.size() ? streams_[stream].last : kNoCall;
}

// --- order

// Two copies may change places if one call asked for both.
bool Oracle::may_pass(const Call& later, const Call& earlier) {
  return later.copy.batch != 0 && later.copy.batch == earlier.copy.batch;
}

// A call that this one must follow and that is not complete.
CallId Oracle::unfinished_before(const Call& call) const {
  for (CallId id = call.before; id != kNoCall; id = calls_[id].before) {
    const Call& before = calls_[id];
    const bool mate = may_pass(call, before);
    if (!mate && !done(id)) return id;
    if (!mate && before.copy.batch == 0) break;  // and so is all before it
    for (const CallId also : before.also) {
      if (mate && !done(also)) return also;
    }
  }
  for (const CallId also : call.also) {
    if (!done(also)) return also;
  }
  if (call.waits_for != kNoCall && !calls_[call.waits_for].complete) return call.waits_for;
  return kNoCall;
}

// For something of another stream.
bool Oracle::waits_beside(const Call& call) const {
  const bool waits = call.waits_for != kNoCall && !calls_[call.waits_for].complete;
  return waits ||
         !std::all_of(call.also.begin(), call.also.end(), [&](CallId id) { return done(id); });
}

// All that is unfinished before it in its stream is copies, none of them the writer's, which wait
// for nothing but each other.
bool Oracle::only_copies_before(const Call& call, CallId writer) const {
  if (waits_beside(call)) return false;
  for (CallId id = call.before; id != kNoCall; id = calls_[id].before) {
    const Call& before = calls_[id];
    const bool mate = may_pass(call, before);
    if (!mate && done(id) && before.copy.batch == 0) return true;
    if (!mate && id == writer) return false;
    if (!done(id) && (before.kind != CallKind::copy || waits_beside(before))) return false;
  }
  return true;
}

bool Oracle::has_failed(CallId call) const {
  return failed_.contains(streams_[calls_[call].stream].context);
}

bool Oracle::has_stopped(CallId call) const {
  return stopped_.contains(streams_[calls_[call].stream].context);
}

// Nothing that this copy reads may still be written by one before it.
void Oracle::reads(CallId id) {
  const Call& call = calls_[id];
  const bool inward = call.copy.direction == Direction::to_device;
  if (!only_copies_before(call, kNoCall)) {
    violate("order", fmt::format("copy {} of stream {} was read before work before it was done", id,
                                 call.stream));
  }
  for (CallId other = call.before; other != kNoCall; other = calls_[other].before) {
    const Call& before = calls_[other];
    if (before.kind != CallKind::copy || (done(other) && before.copy.batch == 0)) return;
    if (done(other) || before.copy.direction == call.copy.direction) continue;
    const Range read{inward ? call.copy.host.address : call.copy.device, call.copy.host.bytes};
    const Range written{inward ? before.copy.host.address : before.copy.device,
                        before.copy.host.bytes};
    const bool snapshot = inward && !call.copy.stable_source;
    if (snapshot || may_pass(call, before) || !read.overlaps(written)) continue;
    violate("order", fmt::format("copy {} of stream {} was read before copy {} had written it", id,
                                 call.stream, other));
  }
}

void Oracle::starts(CallId id) {
  const Call& call = calls_[id];
  const CallId before = unfinished_before(call);
  const bool behind_failed = has_failed(id) && before != kNoCall;
  if (call.kind == CallKind::kernel && (behind_failed || has_stopped(id))) {
    violate("run-behind-forgery", fmt::format("call {} began in a context that had failed", id));
  } else if (before != kNoCall) {
    violate("order", fmt::format("call {} of stream {} began before call {} was done", id,
                                 call.stream, before));
  }
}

void Oracle::completes(CallId id) {
  Call& call = calls_[id];
  call.complete = true;
  if (call.kind == CallKind::copy && call.copy.direction == Direction::to_device) {
    std::erase(sources_, id);
    call.contents = {};
  }
}

void Oracle::sync_returns(CallId last) {
  if (!has_failed(last) && !has_stopped(last)) check_covered(last);
}

// Everything before `last` in its stream, and what that waited for in others.
void Oracle::check_covered(CallId last) {
  std::vector<CallId> open{last};
  while (!open.empty()) {
    CallId id = open.back();
    open.pop_back();
    for (; id != kNoCall && !covered_[id]; id = calls_[id].before) {
      const Call& call = calls_[id];
      if (!call.complete)
        violate("sync", fmt::format("a synchronising call returned before call {}", id));
      if (!call.opened) {
        violate(
            "verify-before-use",
            fmt::format("the program may read what copy {} brought, which is not verified", id));
      }
      covered_[id] = true;
      if (call.waits_for != kNoCall) open.push_back(call.waits_for);
      open.insert(open.end(), call.also.begin(), call.also.end());
    }
  }
}

// --- the bus

Oracle::Lane& Oracle::lane_of(uint32_t lane) {
  if (lanes_.size() <= lane) lanes_.resize(lane + 1);
  return lanes_[lane];
}

void Oracle::own_message(uint32_t lane, CallId carried) {
  if (carried != kNoCall) {
    violate("message-match",
            fmt::format("a message of the driver's own carried bytes of copy {}", carried));
  }
  exposes(lane, counter(lane), nullptr);
}

void Oracle::slot_holds(uint32_t lane, uint32_t slot, const Sealed& record) {
  lane_of(lane).slots[slot] = record;
}

void Oracle::slot_wiped(uint32_t lane, uint32_t slot) { lane_of(lane).slots.erase(slot); }

void Oracle::sealed_instead(uint32_t lane, uint32_t slot) {
  if (!lane_of(lane).slots.contains(slot)) return;
  violate("iv-once", fmt::format("lane {} sealed a message again whose record slot {} still holds",
                                 lane, slot));
}

void Oracle::exposes(uint32_t lane, uint64_t position, const Sealed* record) {
  Lane& on = lane_of(lane);
  if (position < on.next) {
    violate("iv-once", fmt::format("lane {} exposed position {} twice", lane, position));
  }
  if (position > on.next) {
    violate("iv-order",
            fmt::format("lane {} sent position {}, the device is at {}", lane, position, on.next));
  }
  if (record != nullptr && record->epoch != on.epoch) {
    violate("rotation", fmt::format("lane {} sent a record of key {}, the device has key {}", lane,
                                    record->epoch, on.epoch));
  }
  if (record != nullptr && record->position != position) {
    violate("iv-order", fmt::format("lane {} sent a record sealed for position {} at {}", lane,
                                    record->position, position));
  }
  on.next = std::max(on.next, position + 1);
}

void Oracle::rotates(uint32_t lane) {
  lane_of(lane).next = 0;
  ++lane_of(lane).epoch;
}

void Oracle::delivers(CallId id, const Range& part, uint64_t content) {
  const Call& call = calls_[id];
  if (call.racy) return;
  const uint64_t index = (part.address - call.copy.host.address) / kMessage;
  const bool whole = part == call.copy.host;
  const uint64_t then = whole ? call.whole : call.contents[index];
  const uint64_t expected = call.copy.stable_source ? memory_.fingerprint(part) : then;
  if (content != expected) {
    violate("stale", fmt::format("copy {} delivered other bytes of [{:#x}, +{}) than were there",
                                 id, part.address, part.bytes));
  }
}

// --- the host

void Oracle::opened(CallId copy) {
  calls_[copy].opened = true;
  std::erase(targets_, copy);
}

void Oracle::carried_to_host(CallId call, const Range& part, bool verified) {
  if (verified && has_failed(call)) {
    violate("deliver-after-failure",
            fmt::format("call {} reached the host after its context had failed", call));
  }
  if (!verified) unverified_.push_back(part);
  disturb(part, call);
}

void Oracle::wiped(const Range& range) { std::erase(unverified_, range); }

void Oracle::gate_opens() {
  if (unverified_.empty()) return;
  violate("wipe", fmt::format("[{:#x}, +{}) holds bytes that did not verify",
                              unverified_.front().address, unverified_.front().bytes));
}

void Oracle::slots_hold(uint64_t bytes) {
  if (bytes > budget_) {
    violate("budget", fmt::format("slots hold {} bytes, the budget is {}", bytes, budget_));
  }
}

void Oracle::seals_ahead(const Range& range) {
  if (mapped_.any(range, kUnmapped)) {
    violate("unmapped", fmt::format("sealed ahead [{:#x}, +{}), which is not mapped", range.address,
                                    range.bytes));
  }
}

void Oracle::violate(const char* rule, std::string what) {
  if (!broken_) broken_ = Broken{rule, std::move(what)};
}

}  // namespace sealane::sim
