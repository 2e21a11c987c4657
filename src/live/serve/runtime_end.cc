// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How the runtime waits, lets go, and ends.

#include <cstdio>

#include "live/serve/runtime.h"

namespace sealane::serve {
namespace {

template <typename Visit>
void each_lane(std::mutex& mutex, const std::vector<std::unique_ptr<Lane>>& lanes, Visit&& visit) {
  size_t count = 0;
  {
    const std::lock_guard lock(mutex);
    count = lanes.size();
  }
  for (size_t i = 0; i < count; ++i) {
    Lane* lane = nullptr;
    {
      const std::lock_guard lock(mutex);
      lane = lanes[i].get();
    }
    if (lane != nullptr) visit(*lane);
  }
}

}  // namespace

void Runtime::drain() {
  each_lane(lanes_mutex_, lanes_, [](Lane& lane) {
    if (!lane.idle()) lane.drain([](const LaneRequest&) { return true; });
  });
}

void Runtime::drain(Range range) {
  each_lane(lanes_mutex_, lanes_, [&](Lane& lane) {
    if (lane.idle()) return;
    lane.drain([&](const LaneRequest& request) {
      const Range host{reinterpret_cast<uint64_t>(request.host), request.bytes};
      const Range device{request.device_address, request.bytes};
      const Range fetch{reinterpret_cast<uint64_t>(request.fetch), request.bytes};
      const Range deliver{reinterpret_cast<uint64_t>(request.deliver), request.bytes};
      return range.overlaps(host) || range.overlaps(device) || range.overlaps(fetch) ||
             range.overlaps(deliver);
    });
  });
  std::vector<Ahead*> aheads;
  {
    const std::lock_guard lock(lanes_mutex_);
    aheads = aheads_;
  }
  for (Ahead* ahead : aheads) ahead->freed(range);
}

void Runtime::forget_context(ContextHandle context) {
  {
    const std::unique_lock lock(streams_mutex_);
    std::erase_if(streams_, [&](const auto& entry) { return entry.second->context == context; });
  }
  unsettled_.forget(context);
  device_memory_.remove_if([&](const auto& entry) { return entry.what.context == context; });
  host_memory_.remove_if([&](const auto& entry) { return entry.what.context == context; });
  {
    const std::lock_guard lock(events_mutex_);
    events_.erase(context);  // the driver destroyed them
  }
  Room full = Room::full;
  room_.compare_exchange_strong(full, Room::open);
  room_for_more_.store(true);
  const std::lock_guard lock(failed_mutex_);
  failed_.erase(context);
  any_failed_.store(!failed_.empty());
}

// Nobody may wait for a word of a context that goes: first everything of the program's runs out.
bool Runtime::give_up_contexts() {
  Room open = Room::open;
  if (!room_.compare_exchange_strong(open, Room::full)) return false;
  { const std::unique_lock nobody_asks(carrying_); }
  drain();
  std::set<ContextHandle> contexts;
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) contexts.insert(stream->context);
  }
  for (const ContextHandle context : contexts) driver_.synchronise(context);
  {
    const std::shared_lock lock(streams_mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      for (GateWord& word : stream->words) word = {};
      stream->before = nullptr;
    }
  }
  const std::lock_guard lock(lanes_mutex_);
  bool gave = false;
  for (auto& lane : lanes_) {
    if (!lane) continue;
    if (lane->ahead() != nullptr) lane->ahead()->stop();
    lane->close();
    retired_.push_back(std::move(lane));
    gave = true;
  }
  return gave;
}

void Runtime::step_aside(const char* why) {
  if (room_.exchange(Room::never) == Room::never) return;
  std::fprintf(stderr, "sealane: stepping aside, copies are the driver's again: %s\n", why);
}

}  // namespace sealane::serve
