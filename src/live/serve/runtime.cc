// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/runtime.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "live/serve/costs.h"
#include "live/serve/options.h"
#include "live/serve/pace.h"

namespace sealane::serve {
namespace {

constexpr size_t kRunMax = 64;
constexpr uint64_t kMovePart = 128_KiB;
constexpr unsigned kWorkersMax = 16;
constexpr unsigned kModelledWorkers = 8;  // a modelled host has the cores this machine lacks

unsigned worker_count() {
  if (options().workers > 0) return std::min(options().workers, 4 * kWorkersMax);
  if (pace().dilation != nullptr && pace().dilation() > 0) return kModelledWorkers;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  // Half of the cores at most: the program needs the others.
  return std::clamp(static_cast<unsigned>(CPU_COUNT(&cores)) / 2, 1u, kWorkersMax);
}

bool is_default(StreamHandle stream) {
  return reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
}

bool is_legacy(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= kLegacyStream; }

}  // namespace

std::atomic<Runtime*> Runtime::current_{nullptr};

// Never deleted: threads of ours and exit handlers of the program use it to the end.
void Runtime::start(GpuDriver& driver) { current_.store(new Runtime(driver)); }

// The caller of a loop takes part in it.
Runtime::Runtime(GpuDriver& driver)
    : driver_(driver),
      crew_(worker_count() - 1),
      staging_(options().staging_bytes_max),
      speculation_(choose_speculation()) {}

// The paper's rules know no cost. Ours measure first, now, where nobody waits for a copy yet.
const Policy* Runtime::choose_speculation() const {
  const Policy* asked = options().speculation();
  if (asked == nullptr || !asked->by_cost || measure_costs(crew_.size()).slots_pay()) {
    return asked;
  }
  SEALANE_LOG(info, "sealing ahead would gain less than it costs here");
  return nullptr;
}

// Gives the event back to its pool with the last who looks at it.
struct Runtime::Lease final : EventLease {
  Lease(Runtime& from, ContextHandle of) : owner(from), context(of) {}
  ~Lease() override { owner.give_event(context, event); }
  Runtime& owner;
  const ContextHandle context;
};

Route Runtime::copy(const CopyAsked& asked) {
  if (!options().async) return Route::passed;
  if (captures_.load(std::memory_order_relaxed) != 0) return Route::passed_capture;
  const Range device_range{asked.device_address, asked.bytes};
  const auto block = device_memory_.find(asked.device_address);
  if (!block || !block->range.contains(device_range)) return Route::passed_memory;
  const StreamPointer state = stream(asked.stream);
  if (!state || state->device != block->what.device) return Route::passed_memory;

  const std::shared_lock carrying(carrying_);
  if (room_.load(std::memory_order_relaxed) != Room::open) return Route::passed_aside;
  size_t place = 0;
  Lane* carrier = nullptr;
  if (sealed_ahead(asked)) {
    const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
    carrier = bulk_lane(state->device, host, asked.device_address, place);
  }
  if (carrier == nullptr) {
    carrier = lane(state->device, asked.direction, asked.device_address, place);
  }
  if (carrier == nullptr) return Route::passed_aside;
  LaneRequest request;
  request.id = asked.id;
  request.device_address = asked.device_address;
  request.bytes = asked.bytes;
  request.context = state->context;
  const Route taken = take_host_side(asked, request);
  if (taken != Route::carried) return taken;

  const std::lock_guard lock(state->mutex);
  if (put_into_stream(asked, *state, *carrier, state->words[place], request) != kSuccess) {
    if (request.staged) staging_.give(request.host);
    return Route::passed;
  }
  plan(asked, state->device, *carrier, request);
  carrier->ask(std::move(request));
  return Route::carried;
}

// A pinned source or destination is the program's to keep still. A pageable source may change as
// soon as the call returns; a pageable destination must be filled before it does.
Route Runtime::take_host_side(const CopyAsked& asked, LaneRequest& request) {
  const auto block = host_memory_.find(reinterpret_cast<uint64_t>(asked.host));
  const Range range{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  const bool pinned = block && block->range.contains(range);
  if (pinned && !block->what.registered) {
    request.host = asked.host;
    request.drivers = !block->what.ours;
    return Route::carried;
  }
  // The program can unmap memory it registered: we do not touch it behind its back.
  request.staged = true;
  if (pinned) {
    request.host = staging_.take(asked.bytes);
    (asked.direction == Direction::to_device ? request.fetch : request.deliver) = asked.host;
  } else if (asked.direction == Direction::to_device) {
    // Partly pinned: a copy of ours may still be writing there.
    if (block || host_memory_.find(range.end() - 1)) drain(range);
    request.host = snapshot(asked.host, asked.bytes);
  } else {
    return Route::passed_pageable;
  }
  return request.host != nullptr ? Route::carried : Route::passed_too_large;
}

bool Runtime::departs(const LaneRequest& request) {
  return request.fetch == nullptr || move(read_memory, request.fetch, request.host, request.bytes);
}

void Runtime::landed(const LaneRequest& request) {
  if (request.deliver == nullptr) return;
  if (!move(write_memory, request.host, request.deliver, request.bytes)) {
    SEALANE_LOG(warn, "memory of the program was gone when a copy arrived");
  }
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
  crew_.each(parts, [&](size_t i) {
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

Code Runtime::put_into_stream(const CopyAsked& asked, Stream& stream, Lane& lane, GateWord& word,
                              LaneRequest& request) {
  const bool adjacent = stream.before && !stream.legacy && stream.run.size() < kRunMax &&
                        !stream.touched.load(std::memory_order_relaxed) &&
                        stream.legacy_epoch == legacy_epoch_.load(std::memory_order_relaxed);
  if (!adjacent) {
    const Code code = begin_run(asked, stream);
    if (code != kSuccess) return code;
  }
  const Range device{asked.device_address, asked.bytes};
  const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  std::erase_if(stream.run, [](const Copied& other) { return other.ticket->finished(); });
  for (const Copied& other : stream.run) {
    const bool same_way = other.direction == asked.direction;
    const bool both_read_host = same_way && asked.direction == Direction::to_device;
    const bool both_read_device = same_way && asked.direction == Direction::to_host;
    const bool apart = (both_read_device || !device.overlaps(other.device)) &&
                       (both_read_host || !host.overlaps(other.host));
    // A lane's word only grows: what one lane has of a stream it carries in order.
    if (!apart || other.word == &word) request.behind.push_back(other.ticket);
  }
  request.after = stream.before;
  request.ticket = std::make_shared<Ticket>();
  const Code code = put_gate(asked, lane, word, request);
  if (code == kSuccess) {
    stream.run.push_back({device, host, asked.direction, &word, request.ticket});
    stream.touched.store(false, std::memory_order_relaxed);
  }
  return code;
}

// What is in the stream now has to be done before the copies that follow.
Code Runtime::begin_run(const CopyAsked& asked, Stream& stream) {
  const auto lease = take_event(stream.context);
  if (!lease) return kNotSupported;
  const Code code = driver_.record(lease->event, asked.stream);
  if (code != kSuccess) return code;
  if (stream.legacy) legacy_epoch_.fetch_add(1, std::memory_order_relaxed);
  stream.legacy_epoch = legacy_epoch_.load(std::memory_order_relaxed);
  stream.before = lease;
  stream.run.clear();
  return kSuccess;
}

Code Runtime::put_gate(const CopyAsked& asked, Lane& lane, GateWord& word, LaneRequest& request) {
  if (memory_operations_.load(std::memory_order_relaxed)) {
    if (word.address == 0 && !lane.take_word(word)) return kNotSupported;
    const Code code = driver_.wait_word(asked.stream, word.address, word.value + 1);
    if (code == kSuccess) {
      request.gate_word = word.address;
      request.gate_value = ++word.value;
    }
    if (code != kNotSupported) return code;
    memory_operations_.store(false);
  }
  auto* held = new std::shared_ptr<Ticket>(request.ticket);
  const auto wait = [](void* data) {
    auto* ticket = static_cast<std::shared_ptr<Ticket>*>(data);
    (*ticket)->wait();
    delete ticket;
  };
  const Code code = driver_.run_on_host(asked.stream, wait, held);
  if (code != kSuccess) delete held;
  return code;
}

void Runtime::carried(const LaneRequest& request, Direction, Code code) {
  if (request.observer != nullptr) {
    request.observer->finish_out(request.flight, code == kSuccess);
  }
  if (request.staged) staging_.give(request.host);
  if (code != kSuccess) fail(request.context, code);
}

void Runtime::fail(ContextHandle context, Code code) {
  const std::lock_guard lock(failed_mutex_);
  failed_.emplace(context, code);  // the first error stands
  any_failed_.store(true);
}

Code Runtime::failure_of(ContextHandle context) {
  const std::lock_guard lock(failed_mutex_);
  const auto found = failed_.find(context);
  return found != failed_.end() ? found->second : kSuccess;
}

void Runtime::touch(StreamHandle handle) {
  if (is_legacy(handle)) {
    legacy_epoch_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (const StreamPointer state = known_stream(handle)) {
    state->touched.store(true, std::memory_order_relaxed);
  }
}

void Runtime::set_capturing(StreamHandle handle, bool now) {
  ContextHandle context = nullptr;
  if (is_default(handle)) driver_.context_of(handle, context);
  const std::lock_guard lock(captures_mutex_);
  if (now) {
    capturing_.insert(key_of(handle, context));
  } else {
    capturing_.erase(key_of(handle, context));
  }
  captures_.store(capturing_.size());
}

uint64_t Runtime::key_of(StreamHandle stream, ContextHandle context) const {
  if (!is_default(stream)) return reinterpret_cast<uint64_t>(stream);
  uint64_t key = reinterpret_cast<uint64_t>(context) ^ 0x5ea1;
  if (!is_legacy(stream)) key ^= static_cast<uint64_t>(pthread_self()) << 1 | 1;
  return key;
}

Runtime::StreamPointer Runtime::known_stream(StreamHandle handle) {
  ContextHandle context = nullptr;
  if (is_default(handle) && driver_.context_of(handle, context) != kSuccess) return nullptr;
  const std::shared_lock lock(streams_mutex_);
  const auto found = streams_.find(key_of(handle, context));
  return found != streams_.end() ? found->second : nullptr;
}

Runtime::StreamPointer Runtime::stream(StreamHandle handle) {
  if (StreamPointer known = known_stream(handle)) return known;
  auto made = std::make_shared<Stream>();
  made->legacy = is_legacy(handle);
  if (driver_.context_of(handle, made->context) != kSuccess) return nullptr;
  if (driver_.device_of(made->context, made->device) != kSuccess) return nullptr;
  const std::unique_lock lock(streams_mutex_);
  return streams_.emplace(key_of(handle, made->context), std::move(made)).first->second;
}

void Runtime::forget_stream(StreamHandle handle) {
  set_capturing(handle, false);
  StreamPointer gone;
  {
    const std::unique_lock lock(streams_mutex_);
    const auto found = streams_.find(reinterpret_cast<uint64_t>(handle));
    if (found == streams_.end()) return;
    gone = std::move(found->second);
    streams_.erase(found);
  }
  const std::lock_guard lock(lanes_mutex_);
  for (size_t place = 0; place < kLanesPerDevice; ++place) {
    const size_t at = kLanesPerDevice * static_cast<size_t>(gone->device) + place;
    if (gone->words[place].address == 0 || at >= lanes_.size() || !lanes_[at]) continue;
    lanes_[at]->give_word(gone->words[place]);
  }
}

Lane* Runtime::lane(int device, Direction direction, uint64_t reachable, size_t& place) {
  const std::lock_guard lock(lanes_mutex_);
  const size_t first = kLanesPerDirection * static_cast<size_t>(direction);
  size_t best = 0;
  for (size_t i = 0; i < kLanesPerDirection; ++i) {
    auto& one = lane_at(device, first + i);
    // A second lane only when the first is busy, and only if there is room for it.
    if (!one && (i == 0 || room_for_more_.load())) {
      one.reset(open_lane(device, direction, reachable));
      if (!one) no_room(i == 0);
    }
    if (!one) break;
    if (one->pending() < lane_at(device, first + best)->pending()) best = i;
    if (one->idle()) break;
  }
  place = first + best;
  return lane_at(device, place).get();
}

std::unique_ptr<Lane>& Runtime::lane_at(int device, size_t place) {
  const size_t first = kLanesPerDevice * static_cast<size_t>(device);
  if (first + kLanesPerDevice > lanes_.size()) lanes_.resize(first + kLanesPerDevice);
  return lanes_[first + place];
}

// The same memory always travels in the same lane, or nobody could foresee what a lane is asked for
// next. Neighbours of the same size travel in different ones.
size_t Runtime::bulk_place(const Range& host) const {
  const size_t lanes = speculation_->by_cost ? kBulkLanes : 1;  // the paper has one
  return kBulkLane + host.address / host.bytes % lanes;
}

// Where there is no room for it copies go with the others.
Lane* Runtime::bulk_lane(int device, const Range& host, uint64_t reachable, size_t& place) {
  const std::lock_guard lock(lanes_mutex_);
  place = bulk_place(host);
  auto& one = lane_at(device, place);
  if (!one && room_for_more_.load()) {
    one.reset(open_lane(device, Direction::to_device, reachable, make_ahead()));
    if (!one) room_for_more_.store(false);
  }
  return one.get();
}

// Registered memory is read when the copy may go, not before.
bool Runtime::sealed_ahead(const CopyAsked& asked) const {
  if (speculation_ == nullptr || asked.direction != Direction::to_device) return false;
  if (asked.bytes < speculation_->bulk_bytes_min) return false;
  const auto block = host_memory_.find(reinterpret_cast<uint64_t>(asked.host));
  return !block || !block->what.registered;
}

Ahead* Runtime::make_ahead() {
  AheadOptions made;
  made.policy = *speculation_;
  made.costs = measure_costs(crew_.size());
  made.slot_bytes_max = options().slot_bytes_max / (speculation_->by_cost ? kBulkLanes : 1);
  made.page_guards = options().page_guards;
  aheads_.push_back(new Ahead(crew_, host_memory_, made));
  host_memory_.each([&](const auto& entry) { aheads_.back()->allocated(entry.range); });
  return aheads_.back();
}

// What was allocated may be guessed before any copy has touched it: a model is loaded in order.
void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  host_memory_.add(range, block);
  const std::lock_guard lock(lanes_mutex_);
  for (Ahead* ahead : aheads_) ahead->allocated(range);
}

// Tells whoever seals ahead of the copy: it may be sealed already, and what it writes may not be.
void Runtime::plan(const CopyAsked& asked, int device, const Lane& lane, LaneRequest& request) {
  if (speculation_ == nullptr || asked.bytes < speculation_->bulk_bytes_min) return;
  const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  if (lane.ahead() != nullptr) {
    if (const auto flight = lane.ahead()->request(host, request.host)) {
      request.flight = *flight;
    } else {
      lane.ahead()->stop();  // it must see all or nothing
    }
    return;
  }
  if (asked.direction == Direction::to_device) return;
  Ahead* ahead = nullptr;
  {
    const std::lock_guard lock(lanes_mutex_);
    if (const auto& bulk = lane_at(device, bulk_place(host))) ahead = bulk->ahead();
  }
  if (ahead == nullptr) return;
  if (const auto flight = ahead->request_out(host)) {
    request.flight = *flight;
    request.observer = ahead;
  }
}

void Runtime::no_room(bool at_all) {
  room_for_more_.store(false);
  Room open = Room::open;
  if (at_all) room_.compare_exchange_strong(open, Room::full);
}

Lane* Runtime::open_lane(int device, Direction direction, uint64_t reachable, Ahead* ahead) {
  auto made = Lane::open(driver_, *this, device, direction, ahead);
  if (!made) {
    SEALANE_LOG(info, "the driver has no context for another lane");
    return nullptr;
  }
  const Code code = made->probe(reachable);
  if (code == kSuccess) return made.release();
  made->close();
  ContextHandle context = nullptr;
  if (code == kForged && driver_.context_of(nullptr, context) == kSuccess) {
    fail(context, code);  // somebody on the bus is no reason to step aside: the error stands
    return nullptr;
  }
  step_aside("a context of ours cannot reach the program's device memory");
  return nullptr;
}

std::shared_ptr<Runtime::Lease> Runtime::take_event(ContextHandle context) {
  auto lease = std::make_shared<Lease>(*this, context);
  {
    const std::lock_guard lock(events_mutex_);
    auto& free = events_[context];
    if (!free.empty()) {
      lease->event = free.back();
      free.pop_back();
      return lease;
    }
  }
  return driver_.make_event(context, lease->event) == kSuccess ? lease : nullptr;
}

void Runtime::give_event(ContextHandle context, EventHandle event) {
  if (event == nullptr) return;
  const std::lock_guard lock(events_mutex_);
  events_[context].push_back(event);
}

}  // namespace sealane::serve
