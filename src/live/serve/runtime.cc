// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/runtime.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "live/serve/options.h"
#include "live/serve/pace.h"

namespace sealane::serve {
namespace {

constexpr size_t kRunMax = 64;
constexpr uint64_t kMovePart = 128_KiB;
constexpr unsigned kWorkersMax = 64;
constexpr unsigned kModelledWorkers = 8;  // a modelled host has the cores this machine lacks

// A number that is not to be worked out, 0 if it is.
unsigned fixed_workers() {
  if (options().workers > 0) return std::min(options().workers, kWorkersMax);
  return pace().dilation != nullptr && pace().dilation() > 0 ? kModelledWorkers : 0;
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
      crew_(fixed_workers() > 0 ? Crew(fixed_workers() - 1) : Crew(Workforce::make())),
      staging_(options().staging_bytes_max),
      speculation_(choose_speculation(options(), crew_.size())),
      reads_(start_reads()),
      unsettled_(driver) {
  SEALANE_LOG(info, "sealing ahead %s", describe(speculation_).c_str());
}

// Gives the event back to its pool with the last who looks at it.
struct Runtime::Lease final : EventLease {
  Lease(Runtime& from, ContextHandle of) : owner(from), context(of) {}
  ~Lease() override { owner.give_event(context, event); }
  Runtime& owner;
  const ContextHandle context;
};

// This is somebody else's process: nothing is thrown into it.
Route Runtime::copy(const CopyAsked& asked) {
  try {
    return offer(asked);
  } catch (const std::exception& problem) {
    step_aside(problem.what());
    return Route::passed_aside;
  }
}

Route Runtime::offer(const CopyAsked& asked) {
  const std::shared_lock carrying(carrying_);
  Carriage carriage;
  const Route route = prepare(asked, {}, carriage);
  if (route != Route::carried) return route;
  const std::lock_guard lock(carriage.stream->mutex);
  if (put_into_stream(asked, carriage) != kSuccess) {
    give_back(carriage);
    return Route::passed;
  }
  plan(asked, carriage.stream->device, *carriage.lane, carriage.request);
  carriage.lane->ask(std::move(carriage.request));
  return Route::carried;
}

Route Runtime::prepare(const CopyAsked& asked, Choice choice, Carriage& out) {
  if (!options().async) return Route::passed;
  if (captures_.load(std::memory_order_relaxed) != 0) return Route::passed_capture;
  const Range device_range{asked.device_address, asked.bytes};
  const auto block = device_memory_.find(asked.device_address);
  if (!block || !block->range.contains(device_range)) return Route::passed_memory;
  out.stream = stream(asked.stream);
  if (!out.stream || out.stream->device != block->what.device) return Route::passed_memory;
  if (room_.load(std::memory_order_relaxed) != Room::open) return Route::passed_aside;
  const int device = out.stream->device;
  if (sealed_ahead(asked, device)) {
    const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
    out.lane = bulk_lane(device, host, asked.device_address, out.place);
  }
  if (out.lane == nullptr) {
    if (choice.neighbour == kNowhere) choice.neighbour = neighbour_of(asked, *out.stream);
    out.lane = lane(device, asked.direction, asked.device_address, choice, out.place);
  }
  if (out.lane == nullptr) return Route::passed_aside;
  out.request.id = asked.id;
  out.request.device_address = asked.device_address;
  out.request.bytes = asked.bytes;
  out.request.context = out.stream->context;
  return take_host_side(asked, out.request);
}

// The lane that has the copy before, if this one continues it.
size_t Runtime::neighbour_of(const CopyAsked& asked, Stream& stream) {
  if (!options().coalesce || asked.bytes > kTogetherMax) return kNowhere;
  const std::lock_guard lock(stream.mutex);
  if (stream.run.empty() || stream.touched.load(std::memory_order_relaxed)) return kNowhere;
  const Copied& before = stream.run.back();
  const bool continues =
      before.direction == asked.direction && before.device.end() == asked.device_address;
  return continues ? static_cast<size_t>(before.word - stream.words) : kNowhere;
}

void Runtime::give_back(const Carriage& carriage) {
  if (carriage.request.staged) staging_.give(carriage.request.host);
  if (carriage.request.read != kNoRead) reads_->cancel(carriage.request.read);
}

// A pinned source or destination is the program's to keep still. A pageable source may change as
// soon as the call returns; a pageable destination must be filled before it does.
Route Runtime::take_host_side(const CopyAsked& asked, LaneRequest& request) {
  const auto block = host_memory_.find(reinterpret_cast<uint64_t>(asked.host));
  const Range range{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  const bool pinned = block && block->range.contains(range);
  if (asked.read_now) {
    if (asked.direction == Direction::to_host) return Route::passed;
    request.staged = true;
    request.host = snapshot(asked.host, asked.bytes);
    return request.host != nullptr ? Route::carried : Route::passed_too_large;
  }
  if (pinned && !block->what.registered) {
    request.host = asked.host;
    request.drivers = !block->what.ours;
    if (reads_ != nullptr && block->what.ours && asked.direction == Direction::to_host) {
      request.read = reads_->begin(range, request.host);
      if (request.read != kNoRead) request.deliver = asked.host;
    }
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
  // What would trap the driver's thread anyway is opened by all workers first.
  if (reads_ != nullptr && request.read == kNoRead) {
    reads_->settle({reinterpret_cast<uint64_t>(request.host), request.bytes});
  }
  return request.fetch == nullptr || move(read_memory, request.fetch, request.host, request.bytes);
}

void Runtime::landed(const LaneRequest& request) {
  if (request.read != kNoRead) {
    return reads_->land(request.read, {request.context, request.observer, request.flight});
  }
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

Code Runtime::put_into_stream(const CopyAsked& asked, Carriage& carriage) {
  Stream& stream = *carriage.stream;
  Code code = follow(asked.stream, stream);
  if (code != kSuccess) return code;
  order(asked, stream.run, carriage);
  carriage.request.after = stream.before;
  code = put_gate(asked.stream, carriage);
  if (code == kSuccess) {
    stream.run.push_back(trace_of(asked, carriage));
    stream.touched.store(false, std::memory_order_relaxed);
  }
  return code;
}

// Behind what is in the stream: with the copies before it, if nothing came between.
Code Runtime::follow(StreamHandle handle, Stream& stream) {
  const bool adjacent = stream.before && !stream.legacy && stream.run.size() < kRunMax &&
                        !stream.touched.load(std::memory_order_relaxed) &&
                        stream.legacy_epoch == legacy_epoch_.load(std::memory_order_relaxed);
  std::erase_if(stream.run, [](const Copied& other) { return other.ticket->finished(); });
  return adjacent ? kSuccess : begin_run(handle, stream);
}

// Which copies of its run it must not overtake.
void Runtime::order(const CopyAsked& asked, std::span<const Copied> run, Carriage& carriage) {
  const Range device{asked.device_address, asked.bytes};
  const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  const GateWord* const word = &carriage.stream->words[carriage.place];
  const Copied* last_of_lane = nullptr;
  auto& behind = carriage.request.behind;
  for (const Copied& other : run) {
    const bool same_way = other.direction == asked.direction;
    const bool both_read_host = same_way && asked.direction == Direction::to_device;
    const bool both_read_device = same_way && asked.direction == Direction::to_host;
    const bool apart = (both_read_device || !device.overlaps(other.device)) &&
                       (both_read_host || !host.overlaps(other.host));
    if (other.word == word) {
      last_of_lane = &other;
    } else if (!apart) {
      behind.push_back(other.ticket);
    }
  }
  // A lane's word only grows: what one lane has of a stream it carries in order.
  if (last_of_lane != nullptr) behind.push_back(last_of_lane->ticket);
  carriage.request.ticket = std::make_shared<Ticket>();
}

Runtime::Copied Runtime::trace_of(const CopyAsked& asked, const Carriage& carriage) {
  return {{asked.device_address, asked.bytes},
          {reinterpret_cast<uint64_t>(asked.host), asked.bytes},
          asked.direction,
          &carriage.stream->words[carriage.place],
          carriage.request.ticket};
}

// What is in the stream now has to be done before the copies that follow.
Code Runtime::begin_run(StreamHandle handle, Stream& stream) {
  const auto lease = take_event(stream.context);
  if (!lease) return kNotSupported;
  const Code code = driver_.record(lease->event, handle);
  if (code != kSuccess) return code;
  if (stream.legacy) legacy_epoch_.fetch_add(1, std::memory_order_relaxed);
  stream.legacy_epoch = legacy_epoch_.load(std::memory_order_relaxed);
  stream.before = lease;
  stream.run.clear();
  return kSuccess;
}

Code Runtime::put_gate(StreamHandle stream, Carriage& carriage) {
  GateWord& word = carriage.stream->words[carriage.place];
  LaneRequest& request = carriage.request;
  if (memory_operations_.load(std::memory_order_relaxed)) {
    if (word.address == 0 && !carriage.lane->take_word(word)) return kNotSupported;
    const Code code = driver_.wait_word(stream, word.address, word.value + 1);
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
  const Code code = driver_.run_on_host(stream, wait, held);
  if (code != kSuccess) delete held;
  return code;
}

// No part of a copy that failed is delivered. Nobody has freed the memory: that waits for us.
void Runtime::failed(const LaneRequest& request, Direction direction, Code code) {
  if (direction == Direction::to_host && !request.staged) {
    wipe({static_cast<uint8_t*>(request.host), request.bytes});
  }
  fail(request.context, code);
}

void Runtime::carried(const LaneRequest& request, Code code) {
  const bool put_off = request.read != kNoRead && code == kSuccess;
  if (request.read != kNoRead && !put_off) reads_->cancel(request.read);
  if (request.observer != nullptr && !put_off) {
    request.observer->finish_out(request.flight, code == kSuccess);
  }
  if (request.staged) staging_.give(request.host);
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

void Runtime::unsettle(StreamHandle handle) {
  ContextHandle context = nullptr;
  if (driver_.context_of(handle, context) != kSuccess) return;
  const auto lease = take_event(context);
  if (!lease || driver_.record(lease->event, handle) != kSuccess) return;
  unsettled_.add(key_of(handle, context), context, lease);
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
