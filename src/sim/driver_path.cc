// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/driver_path.h"

#include <algorithm>
#include <utility>

#include "platform/cost.h"
#include "sim/runtime.h"

namespace sealane::sim {
namespace {

constexpr Duration kEnqueue{1'000};  // an asynchronous copy with CC off

}  // namespace

DriverPath::DriverPath(World& world, Threads& threads)
    : world_(world),
      threads_(threads),
      platform_(with_engine(world.setup.platform, world.setup.policy, workers_for(world.setup))) {
  cold_ = platform_;
  for (SealedPath* path : {&cold_.to_device.cc, &cold_.to_host.cc}) {
    path->stock_aead_gb_per_s = path->stock_aead_cold_gb_per_s;
  }
}

// What was copied lately is still in cache; a first copy finds its bytes in memory.
bool DriverPath::in_cache(const Range& host) {
  const auto [last, first_time] = copied_at_.emplace(host.address, copied_);
  const bool recent = !first_time && copied_ - last->second <= platform_.host.cache_bytes;
  last->second = copied_;
  copied_ += host.bytes;
  return recent;
}

// A kernel is on its way for a while after its launch has returned; the gap that a kernel always
// leaves is part of its run time.
Instant DriverPath::handed_over(ItemKind kind) const {
  if (kind != ItemKind::kernel) return world_.now();
  const bool cc = world_.setup.policy.confidential;
  return world_.now() + launch_time(platform_.gpu, cc) + queue_time(platform_.gpu, cc) -
         queue_gap(platform_.gpu);
}

Duration DriverPath::call(const ProgramCall& call) {
  world_.device.submit({.kind = call.kind,
                        .stream = call.stream,
                        .call = call.call,
                        .record = call.record,
                        .run_time = call.run_time,
                        .not_before = handed_over(call.kind),
                        .word = call.flag,
                        .work = call.work,
                        .host = call.host});
  if (call.kind == ItemKind::record) {
    if (events_.size() <= call.event) events_.resize(call.event + 1);
    events_[call.event] = {call.stream, world_.device.submitted(call.stream)};
  }
  return call_time(platform_.gpu, call.kind, world_.setup.policy.confidential);
}

Duration DriverPath::copy(const ProgramCopy& copy, uint32_t context, uint32_t thread) {
  if (copies_.size() <= copy.call) copies_.resize(copy.call + 256);
  copies_[copy.call] = {copy, context};
  const Path& path =
      copy.direction == Direction::to_device ? platform_.to_device : platform_.to_host;
  if (!drains()) {
    const Duration run =
        world_.setup.policy.confidential
            ? stock_copy_time(platform_, path, host_memory(copy.memory), copy.host.bytes)
            : open_copy_time(path, host_memory(copy.memory), copy.host.bytes);
    world_.device.submit({.kind = ItemKind::copy,
                          .stream = copy.stream,
                          .call = copy.call,
                          .run_time = run,
                          .not_before = world_.now(),
                          .direction = copy.direction});
    if (blocks(copy)) sync(copy.stream, world_.device.submitted(copy.stream), thread);
    return kEnqueue;
  }
  world_.device.submit({.kind = ItemKind::mark, .stream = copy.stream});
  const uint64_t before = world_.device.submitted(copy.stream);
  world_.device.submit({.kind = ItemKind::gate, .stream = copy.stream, .call = copy.call});
  wait({copy.stream, before, thread, copy.call});
  return Duration{0};
}

bool DriverPath::drains() const {
  return world_.setup.policy.confidential && platform_.cc.copies_block;
}

bool DriverPath::blocks(const ProgramCopy& copy) const {
  return drains() || copy.sync || copy.memory != MemoryKind::pinned;
}

void DriverPath::start(CallId call, uint32_t thread) {
  const Copying& copying = copies_[call];
  const ProgramCopy& copy = copying.copy;
  const Platform& platform = in_cache(copy.host) ? platform_ : cold_;
  const Path& path = copy.direction == Direction::to_device ? platform.to_device : platform.to_host;
  if (channels_.size() <= copying.context) channels_.resize(copying.context + 1);
  Channel& channel = channels_[copying.context];
  Instant& free = channel.free;
  channel.key_bytes += copy.host.bytes;
  if (channel.key_bytes >= platform_.cc.key_rotation_bytes) {
    channel.key_bytes = 0;
    free = std::max(free, world_.now()) + from_us(platform_.cc.key_rotation_us);
  }
  // The caller's core is at it, and the caller shares the cores like anybody else.
  const Duration alone = stock_copy_time(platform, path, host_memory(copy.memory), copy.host.bytes);
  free = std::max(free, world_.now()) + world_.crowded(alone, 1);
  world_.events.add(free, EventKind::driver_free, thread, call);
  world_.timeline.add({.track = Track::driver,
                       .what = "seal and copy",
                       .bytes = copy.host.bytes,
                       .from = world_.now(),
                       .until = free});
}

void DriverPath::copy_finished(uint32_t thread, CallId call) {
  if (world_.device.failed(world_.device.context(copies_[call].copy.stream))) {
    return threads_.wake(thread);
  }
  world_.oracle.starts(call);
  world_.oracle.completes(call);
  arrive(copies_[call].copy);
  world_.device.landed(call);
  threads_.wake(thread);
}

void DriverPath::copy_done(CallId call) { arrive(copies_[call].copy); }

void DriverPath::arrive(const ProgramCopy& copy) {
  if (copy.direction == Direction::to_device) return;
  world_.memory.write(copy.host);
  world_.cpu_writes(copy.host);
  world_.oracle.host_written(copy.host);
  world_.oracle.opened(copy.call);
}

void DriverPath::sync(uint32_t stream, uint64_t count, uint32_t thread) {
  wait({stream, count, thread, kNoCall});
}

void DriverPath::sync_all(uint32_t context, uint32_t thread) {
  bool waits = false;
  for (uint32_t stream = 0; stream < world_.device.streams(); ++stream) {
    if (world_.device.context(stream) != context) continue;
    waits = true;
    waiting_.push_back({stream, world_.device.submitted(stream), thread, kNoCall});
    world_.device.watch(stream, world_.device.submitted(stream), Duration{0});
  }
  if (!waits) threads_.wake(thread);
}

uint64_t DriverPath::event_place(uint32_t event) const {
  return event < events_.size() ? events_[event].place : 0;
}

void DriverPath::wait(const Waiting& waiting) {
  waiting_.push_back(waiting);
  world_.device.watch(waiting.stream, waiting.count, Duration{0});
}

void DriverPath::notify(uint32_t stream, uint64_t count) {
  std::vector<Waiting> ready;
  std::erase_if(waiting_, [&](const Waiting& each) {
    if (each.stream != stream || each.count > count) return false;
    ready.push_back(each);
    return true;
  });
  for (const Waiting& each : ready) {
    if (each.copy != kNoCall) {
      start(each.copy, each.thread);
    } else if (std::none_of(waiting_.begin(), waiting_.end(),
                            [&](const Waiting& other) { return other.thread == each.thread; })) {
      threads_.wake(each.thread);
    }
  }
}

}  // namespace sealane::sim
