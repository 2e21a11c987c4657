// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The way of a call, in order:
//   1. handle_*   the call joins its stream's queue
//   2. step       from the front: submit it; or issue the copy and put its gate behind it; or stop
//   3. handle_reached, handle_landed, handle_opened   the device and the workers report
//   4. settle     synchronising calls whose stream is done, and whose copies are opened, return

#include "core/order/order.h"

#include <algorithm>

#include "base/check.h"

namespace sealane {
namespace {

Range device_range(const OrderedCopy& copy) { return {copy.device, copy.host.bytes}; }

// Whether the two may not change places: one writes what the other touches.
bool conflict(const OrderedCopy& a, const OrderedCopy& b) {
  const bool both_out = a.direction == Direction::to_host && b.direction == Direction::to_host;
  const bool both_in = a.direction == Direction::to_device && b.direction == Direction::to_device;
  return (!both_out && device_range(a).overlaps(device_range(b))) ||
         (!both_in && a.host.overlaps(b.host));
}

}  // namespace

Order::Order(const OrderOptions& options)
    : options_(options), openings_(kOpeningsMax), actions_(1024) {}

// --- 1. calls

void Order::handle_call(StreamKey key, uint64_t call) { add(key, {.call = call}); }

void Order::handle_copy(const OrderedCopy& copy) {
  add(copy.stream, {.kind = EntryKind::copy, .copy = copy});
}

void Order::handle_record(StreamKey key, EventKey event_key, uint64_t call) {
  event(event_key) = {.stream = key, .sequence = stream(key).called + 1, .submitted = 0};
  add(key, {.kind = EntryKind::record, .call = call, .event = event_key});
}

// Waits for the latest record before this call; a wait for what was never recorded is over at once.
void Order::handle_wait(StreamKey key, EventKey event_key, uint64_t call) {
  const Event& recorded = event(event_key);
  add(key, {.kind = EntryKind::wait,
            .call = call,
            .on_stream = recorded.stream,
            .on_sequence = recorded.sequence});
}

void Order::add(StreamKey key, Entry entry) {
  Stream& on = stream(key);
  entry.sequence = ++on.called;
  on.deferred.push(entry);
  ++deferred_;
}

// --- 2. step

// Takes one entry off the front of the stream, if its time has come.
bool Order::step(StreamKey key) {
  Stream& on = streams_[key];
  if (on.deferred.empty()) return false;
  const Entry entry = on.deferred.front();
  if (entry.kind == EntryKind::wait && entry.on_sequence > 0 &&
      stream(entry.on_stream).processed < entry.on_sequence) {
    return false;  // the record is itself deferred: the device does not know it yet
  }
  if (entry.kind == EntryKind::copy) {
    if (!may_issue(on, entry.copy)) {
      watch(key, on.last_call);
      return false;
    }
    issue(key, entry.copy);
  } else {
    submit(key, entry);
  }
  streams_[key].deferred.pop();
  --deferred_;
  processed(key, entry);
  return true;
}

bool Order::may_issue(const Stream& on, const OrderedCopy& copy) const {
  if (!options_.rules.order) return true;
  if (on.reached < on.last_call) return false;
  return std::none_of(on.under_way.begin(), on.under_way.end(),
                      [&](const OrderedCopy& earlier) { return conflict(earlier, copy); });
}

void Order::issue(StreamKey key, const OrderedCopy& copy) {
  Stream& on = streams_[key];
  ++stats_.issued;
  on.under_way.push_back(copy);
  if (copy.small && options_.coalesce) {
    small_.push_back(copy);
  } else {
    actions_.push(Issue{.copies = {copy.key}, .count = 1});
  }
  if (!options_.rules.gate) return;
  actions_.push(Gate{key, copy.key});
  ++on.submitted;
}

void Order::submit(StreamKey key, const Entry& entry) {
  Stream& on = streams_[key];
  actions_.push(Submit{key, entry.call});
  on.last_call = ++on.submitted;
  on.under_way.clear();  // what follows waits for this call, which waits for their gates
  if (entry.kind != EntryKind::record) return;
  Event& recorded = events_[entry.event];
  if (recorded.stream == key && recorded.sequence == entry.sequence)
    recorded.submitted = on.submitted;
}

void Order::processed(StreamKey key, const Entry& entry) {
  streams_[key].processed = entry.sequence;
  for (Wait& wait : waits_) {
    if (wait.stage != Wait::Stage::deferred || wait.stream != key) continue;
    if (wait.sequence != entry.sequence) continue;
    wait.submitted = streams_[key].submitted;
    wait.stage = Wait::Stage::on_device;
    watch(key, wait.submitted);
  }
  settle_waits();
}

void Order::watch(StreamKey key, uint64_t count) {
  Stream& on = streams_[key];
  if (count <= on.reached || count <= on.watched) return;
  on.watched = count;
  actions_.push(Watch{key, count});
}

// Small copies gather while a batch is under way, so nobody waits for company in vain.
bool Order::flush_small() {
  if (small_.empty() || batch_under_way_ > 0) return false;
  Issue batch{.copies = {}, .count = 0};
  uint64_t bytes = 0;
  for (const OrderedCopy& copy : small_) {
    bytes += copy.host.bytes;
    if (batch.count == Issue::kCopiesMax) break;
    if (batch.count > 0 && bytes > options_.batch_bytes_max) break;
    batch.copies[batch.count++] = copy.key;
  }
  small_.erase(small_.begin(), small_.begin() + batch.count);
  batch_under_way_ = batch.count;
  ++stats_.batches;
  stats_.coalesced += batch.count - 1;
  actions_.push(batch);
  return true;
}

// --- 3. reports

void Order::handle_reached(StreamKey key, uint64_t count) {
  Stream& on = stream(key);
  on.reached = std::max(on.reached, count);
  settle_waits();
}

void Order::handle_landed(StreamKey key, CopyKey copy, Direction direction) {
  if (direction == Direction::to_host) openings_.push({.copy = copy, .opened = false});
  std::vector<OrderedCopy>& under_way = stream(key).under_way;
  const auto found = std::find_if(under_way.begin(), under_way.end(),
                                  [&](const OrderedCopy& each) { return each.key == copy; });
  if (found != under_way.end()) under_way.erase(found);
}

void Order::handle_batch_landed() { batch_under_way_ = 0; }

void Order::handle_opened(CopyKey copy) {
  for (size_t i = 0; i < openings_.size(); ++i) {
    if (openings_[i].copy == copy) openings_[i].opened = true;
  }
  while (!openings_.empty() && openings_.front().opened) {
    openings_.pop();
    ++openings_first_;
  }
  settle_waits();
}

void Order::handle_failed() {
  while (!waits_.empty()) {
    const WaiterKey waiter = waits_.back().waiter;
    std::erase_if(waits_, [&](const Wait& wait) { return wait.waiter == waiter; });
    actions_.push(Wake{waiter});
  }
}

// --- 4. synchronising calls

void Order::handle_sync_stream(StreamKey key, WaiterKey waiter) {
  const Stream& on = stream(key);
  add_wait(waiter, key, on.called, on.submitted);
  settle_waits();
}

void Order::handle_sync_event(EventKey event_key, WaiterKey waiter) {
  const Event recorded = event(event_key);
  add_wait(waiter, recorded.stream, recorded.sequence, recorded.submitted);
  settle_waits();
}

void Order::handle_sync_all(WaiterKey waiter) {
  stream(0);  // there is something to wait for even before the first call
  for (StreamKey key = 0; key < streams_.size(); ++key) {
    add_wait(waiter, key, streams_[key].called, streams_[key].submitted);
  }
  settle_waits();
}

void Order::add_wait(WaiterKey waiter, StreamKey key, uint64_t sequence, uint64_t submitted) {
  Wait wait{.waiter = waiter, .stream = key, .sequence = sequence, .submitted = submitted};
  if (stream(key).processed >= sequence) {
    wait.stage = Wait::Stage::on_device;
    watch(key, submitted);
  }
  waits_.push_back(wait);
}

void Order::settle_waits() {
  for (size_t i = 0; i < waits_.size();) {
    if (!settled(waits_[i])) {
      ++i;
      continue;
    }
    const WaiterKey waiter = waits_[i].waiter;
    waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!waits(waiter)) actions_.push(Wake{waiter});
  }
}

// The device first; then whatever has come back by then must be verified. That may be more than
// the call covers, but workers alone finish it.
bool Order::settled(Wait& wait) {
  if (wait.stage == Wait::Stage::on_device && streams_[wait.stream].reached >= wait.submitted) {
    wait.stage = Wait::Stage::opening;
    wait.openings = options_.rules.verify_before_use ? openings_end() : 0;
  }
  return wait.stage == Wait::Stage::opening && openings_first_ >= wait.openings;
}

bool Order::waits(WaiterKey waiter) const {
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](const Wait& wait) { return wait.waiter == waiter; });
}

// --- the driver asks

std::optional<OrderAction> Order::poll() {
  for (;;) {
    if (!actions_.empty()) {
      const OrderAction action = actions_.front();
      actions_.pop();
      return action;
    }
    bool moved = flush_small();
    for (StreamKey key = 0; key < streams_.size() && !moved && deferred_ > 0; ++key) {
      moved = step(key);
    }
    if (!moved && actions_.empty()) return std::nullopt;
  }
}

bool Order::full(StreamKey key) const {
  return key < streams_.size() && streams_[key].deferred.full();
}

bool Order::idle(StreamKey key) const {
  if (key >= streams_.size()) return true;
  const Stream& on = streams_[key];
  return on.deferred.empty() && on.reached >= on.submitted && on.under_way.empty();
}

bool Order::done(StreamKey key) const { return idle(key) && openings_.empty(); }

bool Order::event_done(EventKey key) const {
  if (key >= events_.size() || events_[key].sequence == 0) return true;
  const Event& recorded = events_[key];
  return recorded.submitted > 0 && streams_[recorded.stream].reached >= recorded.submitted &&
         openings_.empty();
}

Order::Stream& Order::stream(StreamKey key) {
  while (streams_.size() <= key) streams_.emplace_back(options_.deferred_max);
  return streams_[key];
}

Order::Event& Order::event(EventKey key) {
  if (events_.size() <= key) events_.resize(key + 1);
  return events_[key];
}

}  // namespace sealane
