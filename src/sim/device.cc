// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/device.h"

#include <algorithm>
#include <utility>

namespace sealane::sim {

Device::Stream& Device::stream(uint32_t id) {
  if (streams_.size() <= id) streams_.resize(id + 1);
  return streams_[id];
}

void Device::submit(const Item& item) {
  ++stream(item.stream).submitted;
  const auto queue = static_cast<uint32_t>(item.stream % queues_.size());
  queues_[queue].push_back(item);
  run_all();
}

void Device::look_again() { run_all(); }

// An event recorded in one queue may be what another waits for.
void Device::run_all() {
  do {
    recorded_ = false;
    for (uint32_t queue = 0; queue < queues_.size(); ++queue) run(queue);
  } while (recorded_);
}

void Device::run(uint32_t queue) {
  std::deque<Item>& waiting = queues_[queue];
  while (!waiting.empty()) {
    const Item& item = waiting.front();
    if (stream(item.stream).busy) return;
    if (item.not_before > events_.now()) {
      if (wakes_[queue] != item.not_before)
        events_.add(item.not_before, EventKind::item_starts, queue);
      wakes_[queue] = item.not_before;
      return;
    }
    if (!start(item)) return;
    waiting.pop_front();
  }
}

// False if it has to wait: whoever it waits for looks again.
bool Device::start(const Item& item) {
  switch (item.kind) {
    case ItemKind::kernel:
    case ItemKind::copy:
      oracle_.starts(item.call);
      stream(item.stream).busy = true;
      stream(item.stream).running = item.call;
      if (item.kind == ItemKind::copy) {
        const Instant across = transfer(item.direction, events_.now(), item.run_time);
        events_.add(across, EventKind::copy_done, item.stream, item.call);
        events_.add(across, EventKind::kernel_ends, item.stream);
      } else {
        events_.add(events_.now() + item.run_time, EventKind::kernel_ends, item.stream);
        timeline_.add({.track = Track::stream,
                       .index = item.stream,
                       .what = "kernel",
                       .from = events_.now(),
                       .until = events_.now() + item.run_time});
      }
      return true;
    case ItemKind::gate:
      if (!has_landed(item.call)) return false;
      break;
    case ItemKind::wait:
      if (item.record != kNoCall && !oracle_.complete(item.record)) return false;
      [[fallthrough]];
    case ItemKind::record:
      oracle_.starts(item.call);
      oracle_.completes(item.call);
      recorded_ = true;
      break;
  }
  finish(item.stream);
  return true;
}

void Device::kernel_ends(uint32_t id) {
  oracle_.completes(std::exchange(stream(id).running, kNoCall));
  stream(id).busy = false;
  finish(id);
  run_all();
}

void Device::finish(uint32_t id) {
  Stream& on = streams_[id];
  ++on.done;
  std::erase_if(on.watched, [&](const Watched& watched) {
    if (watched.count > on.done) return false;
    events_.add(events_.now() + watched.latency, EventKind::notify, id, watched.count);
    return true;
  });
}

void Device::landed(CallId copy) {
  if (landed_.size() <= copy) landed_.resize(copy + 1024, false);
  landed_[copy] = true;
  run_all();
}

void Device::watch(uint32_t id, uint64_t count, Duration latency) {
  Stream& on = stream(id);
  if (on.done >= count) {
    events_.add(events_.now() + latency, EventKind::notify, id, count);
  } else {
    on.watched.push_back({count, latency});
  }
}

Instant Device::transfer(Direction direction, Instant earliest, Duration busy) {
  Instant& free = link_free_[direction == Direction::to_device ? 0 : 1];
  const Instant from = std::max(free, earliest);
  free = from + busy;
  timeline_.add(
      {.track = direction == Direction::to_device ? Track::link_to_device : Track::link_to_host,
       .what = "transfer",
       .from = from,
       .until = free});
  return free;
}

}  // namespace sealane::sim
