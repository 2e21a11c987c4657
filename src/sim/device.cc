// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/device.h"

#include <algorithm>
#include <utility>

namespace sealane::sim {

using workload::StreamKind;

Device::Stream& Device::stream(uint32_t id) {
  if (streams_.size() <= id) streams_.resize(id + 1);
  return streams_[id];
}

void Device::describe(uint32_t id, uint32_t context, StreamKind kind) {
  stream(id).context = context;
  stream(id).kind = kind;
}

// What is in the streams that this one waits for without being told to.
std::vector<Device::Behind> Device::rule_of_legacy(uint32_t id) const {
  std::vector<Behind> behind;
  const Stream& on = streams_[id];
  if (on.kind == StreamKind::non_blocking) return behind;
  for (uint32_t other = 0; other < streams_.size(); ++other) {
    const Stream& it = streams_[other];
    const bool related = on.kind == StreamKind::legacy ? it.kind == StreamKind::blocking
                                                       : it.kind == StreamKind::legacy;
    if (other == id || !related || it.context != on.context || it.submitted == 0) continue;
    behind.push_back({other, it.submitted});
  }
  return behind;
}

void Device::submit(const Item& item) {
  Stream& on = stream(item.stream);
  std::vector<Behind> behind = rule_of_legacy(item.stream);
  ++on.submitted;
  const auto queue = static_cast<uint32_t>(item.stream % queues_.size());
  queues_[queue].push_back({item, std::move(behind)});
  run_all();
}

// What one queue has done may be what another waits for.
void Device::run_all() {
  do {
    progress_ = false;
    for (uint32_t queue = 0; queue < queues_.size(); ++queue) run(queue);
  } while (progress_);
}

void Device::run(uint32_t queue) {
  std::deque<Queued>& waiting = queues_[queue];
  while (!waiting.empty()) {
    const Queued next = waiting.front();
    const Item& item = next.item;
    if (stream(item.stream).busy) return;
    if (item.not_before > events_.now()) {
      if (wakes_[queue] != item.not_before)
        events_.add(item.not_before, EventKind::item_starts, queue);
      wakes_[queue] = item.not_before;
      return;
    }
    if (failed_.contains(stream(item.stream).context)) {
      waiting.pop_front();
      finish(item.stream);
      continue;
    }
    if (!may_start(item)) return;
    const bool behind = std::any_of(next.behind.begin(), next.behind.end(),
                                    [&](const Behind& it) { return done(it.stream) < it.count; });
    if (behind) return;
    waiting.pop_front();
    start(item);
  }
}

bool Device::may_start(const Item& item) const {
  if (item.kind == ItemKind::gate) return has_landed(item.call);
  if (item.kind == ItemKind::hold) return raised_.contains(item.word);
  if (item.kind == ItemKind::wait) {
    return item.record == kNoCall || oracle_.complete(item.record);
  }
  if (item.kind == ItemKind::word) {
    const auto word = words_.find(item.word);
    return word != words_.end() && word->second >= item.value;
  }
  return true;
}

void Device::start(const Item& item) {
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
      return;
    case ItemKind::work:
      oracle_.starts(item.call);
      if (work_) work_(item);
      oracle_.completes(item.call);
      break;
    case ItemKind::hold:
    case ItemKind::wait:
    case ItemKind::record:
      oracle_.starts(item.call);
      oracle_.completes(item.call);
      break;
    case ItemKind::gate:
    case ItemKind::word:
    case ItemKind::mark:
      break;
  }
  finish(item.stream);
}

void Device::kernel_ends(uint32_t id) {
  oracle_.completes(std::exchange(stream(id).running, kNoCall));
  stream(id).busy = false;
  finish(id);
  run_all();
}

void Device::finish(uint32_t id) {
  progress_ = true;
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

void Device::set_word(uint64_t word, uint32_t value) {
  uint32_t& now = words_[word];
  now = std::max(now, value);
  run_all();
}

void Device::raise(uint32_t flag) {
  raised_.insert(flag);
  run_all();
}

void Device::fail(uint32_t context) {
  failed_.insert(context);
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
