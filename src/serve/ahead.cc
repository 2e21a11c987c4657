// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/ahead.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/predict/paper.h"
#include "core/predict/tournament.h"
#include "os/pace.h"
#include "serve/events.h"

namespace sealane::serve {
namespace {

constexpr size_t kTransfersKnown = size_t{1} << 15;

std::unique_ptr<GuessSource> make_source(const Policy& policy) {
  if (policy.foresight == Foresight::paper) return std::make_unique<PaperPredictor>();
  return std::make_unique<Tournament>(PredictLimits{.transfers_max = kTransfersKnown});
}

PipelineOptions pipeline_options(const AheadOptions& options, bool page_guards) {
  PipelineOptions made;
  made.page_guards = page_guards;
  made.policy = options.policy;
  made.costs = options.costs;
  made.slot_bytes_max = options.slot_bytes_max;
  made.lanes = 1;
  made.publish_window = 1;
  made.costs.split = true;  // messages.h
  return made;
}

// What those that stopped had to tell.
struct Past {
  std::mutex mutex;
  std::vector<Ahead::Stats> stats;
};

Past& past() {
  static Past& made = *new Past;
  return made;
}

}  // namespace

std::atomic<Ahead*> Ahead::all_[kLanesMax];
std::atomic<uint64_t> Ahead::made_{0};
thread_local Ahead* Ahead::carrying_ = nullptr;

Ahead::Ahead(WorkerPool& pool, const RangeMap<HostBlock>& host_memory, const AheadOptions& options)
    : pool_(pool),
      host_memory_(host_memory),
      options_(options),
      source_(make_source(options.policy)),
      guards_(options.page_guards),
      memory_(options.slot_bytes_max, Staging::Locking::required, options.budget),
      pipeline_(pipeline_options(options, guards_.guards_pages()), source_.get()),
      slots_(SlotPool::kSlotsMax),
      copies_(Pipeline::kFlightsMax) {
  for (auto& entry : all_) {
    Ahead* none = nullptr;
    if (entry.compare_exchange_strong(none, this)) return;
  }
  stopped_ = true;  // nobody would find it
}

std::optional<FlightId> Ahead::claim(const Range& host, const void* source) {
  return attempt([&]() -> std::optional<FlightId> {
    const std::lock_guard lock(mutex_);
    if (stopped_ || pipeline_.full()) return std::nullopt;
    const FlightId flight = pipeline_.handle_copy({.direction = Direction::to_device,
                                                   .lane = kLane,
                                                   .host = host,
                                                   .memory = MemoryKind::pinned},
                                                  now());
    copies_[flight] = {static_cast<const uint8_t*>(source), host};
    return flight;
  });
}

void Ahead::await_unread(const Range& host) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !reads_for(host); });
}

// --- the program's thread

std::optional<FlightId> Ahead::request_out(const Range& host) {
  return attempt([&]() -> std::optional<FlightId> {
    const std::lock_guard lock(mutex_);
    if (stopped_ || pipeline_.full()) return std::nullopt;
    return pipeline_.handle_copy({.direction = Direction::to_host, .lane = kLane, .host = host},
                                 now());
  });
}

void Ahead::finish_out(FlightId flight, bool verified) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (!verified) return stop_locked();
    const uint32_t messages =
        message_count(pipeline_.host_of(flight).bytes, pipeline_.message_bytes_of(flight));
    for (uint32_t i = 0; i < messages; ++i) {
      pipeline_.handle_arrived(flight, i, now());
      pipeline_.handle_opened(flight, i, true, now());
    }
    pump();
  });
}

void Ahead::allocated(const Range& host) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (!stopped_) pipeline_.handle_allocated(host);
  });
}

void Ahead::forget(const Range& host) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    pipeline_.handle_freed(host, now());
    pump();
  });
}

bool Ahead::reads(const Range& host) const {
  const std::lock_guard lock(mutex_);
  return reads_for(host);
}

void Ahead::freed(const Range& host) {
  forget(host);
  await_unread(host);
}

bool Ahead::reads_for(const Range& host) const {
  return std::any_of(sealing_.begin(), sealing_.end(),
                     [&](SlotId id) { return slots_[id].ahead && slots_[id].host.overlaps(host); });
}

// A copy ends with its last message sealed, unless the pipeline was stopped under it: then workers
// may still be at messages that nobody waits for.
void Ahead::settle(const void* source, uint64_t bytes) {
  const auto first = static_cast<const uint8_t*>(source);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::none_of(sealing_.begin(), sealing_.end(), [&](SlotId id) {
      const Slot& slot = slots_[id];
      return !slot.ahead && slot.source >= first && slot.source < first + bytes;
    });
  });
}

// --- the lane's thread

void Ahead::ready(FlightId flight) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (!stopped_) pipeline_.handle_ready(flight, now());
  });
}

bool Ahead::await_turn() {
  return attempt([&] {
    std::unique_lock lock(mutex_);
    await_turn(lock, Patience::for_workers);
    return !stopped_ && !turns_.empty();
  });
}

std::optional<Ahead::Turn> Ahead::next() {
  return attempt([&]() -> std::optional<Turn> {
    const std::lock_guard lock(mutex_);
    if (!stopped_) pump();
    if (stopped_ || turns_.empty()) return std::nullopt;
    const auto front = turns_.front();
    turns_.pop_front();
    if (const Pad* pad = std::get_if<Pad>(&front)) {
      first_position_ = pad->position;
      return Turn{.bytes = pad->count, .messages = static_cast<uint32_t>(pad->count)};
    }
    publication_ = std::get<Publish>(front);
    first_position_ = publication_->position;
    const FlightId flight = publication_->flight;
    const Range& host = copies_[flight].host;
    Turn turn{.flight = flight, .message_bytes = pipeline_.message_bytes_of(flight)};
    turn.offset = turn.start_of(publication_->message);
    turn.messages = 1 + pipeline_.following(kLane);
    turn.bytes = std::min(turn.start_of(turn.messages), host.bytes - turn.offset);
    return turn;
  });
}

std::optional<Instant> Ahead::deadline() {
  const std::lock_guard lock(mutex_);
  return stopped_ ? std::nullopt : pipeline_.deadline();
}

void Ahead::look() {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (!stopped_) pump();
  });
}

void Ahead::begin(const Turn& turn) {
  carrying_ = this;
  const std::lock_guard lock(mutex_);
  in_flight_ = turn;
  if (turn.flight == kNone) return messages_.end();
  const auto source = reinterpret_cast<uint64_t>(copies_[turn.flight].source);
  messages_.begin({source + turn.offset, turn.bytes}, turn.message_bytes);
}

void Ahead::end(const Turn& turn, bool succeeded) {
  attempt([&] {
    carrying_ = nullptr;
    std::unique_lock lock(mutex_);
    if (!succeeded) stop_locked();
    if (turn.flight == kNone && !stopped_) {
      pipeline_.handle_published(kLane, first_position_ + turn.messages - 1, now());
    }
    // Messages the driver sealed in a way we could not follow.
    while (turn.flight != kNone && !messages_.over() && wait_for_turn(lock)) {
      pass_message(false, messages_.length());
    }
    in_flight_.reset();
    messages_.end();
    if (publication_) drop_published(false);
    if (stopped_) return;
    reconcile();
    learn_message_size();  // what follows is begun when the lane has looked for its next copy
  });
}

// The driver's counter is what counts.
void Ahead::reconcile() {
  const uint64_t head = pipeline_.lane(kLane).head();
  const uint64_t next = followed_ + 1;
  if (lost_ || !follower_.started() || next < head) {
    pipeline_.handle_rotated(kLane, now());
    followed_ = pipeline_.lane(kLane).head() - 1;
    lost_ = false;
  } else if (next > head) {
    pipeline_.handle_consumed(kLane, next, now());
  }
}

void Ahead::stop() {
  const std::lock_guard lock(mutex_);
  stop_locked();
}

void Ahead::stop_locked() {
  if (stopped_) return;
  stopped_ = true;
  for (SlotId id = 0; id < slots_.size(); ++id) {
    const bool busy = std::find(sealing_.begin(), sealing_.end(), id) != sealing_.end();
    const bool answering = publication_ && publication_->slot == id;  // being copied out
    if (!busy && !answering && slots_[id].record != nullptr) drop(id, false);
  }
  turns_.clear();
  memory_.close();
  {
    const std::lock_guard lock(past().mutex);
    past().stats.push_back(stats_locked());
  }
  for (auto& entry : all_) {  // its place is for another
    Ahead* self = this;
    if (entry.compare_exchange_strong(self, nullptr)) break;
  }
  changed_.notify_all();
}

bool Ahead::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool Ahead::sealing() {
  const std::lock_guard lock(mutex_);
  return !sealing_.empty();
}

// One that stops meanwhile may be found twice, but is not missed.
std::vector<Ahead::Stats> Ahead::stats_of_all() {
  std::vector<Stats> out;
  for (auto& entry : all_) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead != nullptr) out.push_back(ahead->stats());
  }
  {
    const std::lock_guard lock(past().mutex);
    out.insert(out.end(), past().stats.begin(), past().stats.end());
  }
  std::sort(out.begin(), out.end(),
            [](const Stats& a, const Stats& b) { return a.number < b.number; });
  const auto same = [](const Stats& a, const Stats& b) { return a.number == b.number; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace sealane::serve
