// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/ahead.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "core/predict/paper.h"
#include "core/predict/tournament.h"
#include "live/serve/events.h"
#include "live/serve/pace.h"

namespace sealane::serve {
namespace {

constexpr LaneId kLane = 0;
constexpr size_t kTransfersKnown = size_t{1} << 15;
constexpr size_t kLanesMax = 64;
constexpr uint64_t kPartBytes = 64_KiB;  // sealed without a break

std::atomic<Ahead*> all[kLanesMax];
thread_local Ahead* carrying = nullptr;  // whose turn this thread has handed to the driver

std::unique_ptr<GuessSource> make_source(const Policy& policy) {
  if (policy.foresight == Foresight::paper) return std::make_unique<PaperPredictor>();
  return std::make_unique<Tournament>(PredictLimits{.transfers_max = kTransfersKnown});
}

PipelineOptions pipeline_options(const AheadOptions& options) {
  PipelineOptions made;
  made.policy = options.policy;
  made.costs = options.costs;
  made.slot_bytes_max = options.slot_bytes_max;
  made.lanes = 1;
  made.publish_window = 1;
  made.costs.split = true;  // messages.h
  return made;
}

std::unique_ptr<SplitGcm> make_digest_key() {
  SystemRandom random;
  const Key key = Key::random(random);
  return SplitGcm::make(key.secret());
}

}  // namespace

Ahead::Ahead(Crew& crew, const RangeMap<HostBlock>& host_memory, const AheadOptions& options)
    : crew_(crew),
      host_memory_(host_memory),
      options_(options),
      source_(make_source(options.policy)),
      guards_(options.page_guards),
      memory_(options.slot_bytes_max, Staging::Locking::required),
      digest_key_(make_digest_key()),
      pipeline_(pipeline_options(options), source_.get()),
      slots_(SlotPool::kSlotsMax),
      copies_(Pipeline::kFlightsMax) {
  for (auto& entry : all) {
    Ahead* none = nullptr;
    if (entry.compare_exchange_strong(none, this)) return;
  }
  stopped_ = true;  // nobody would find it
}

// --- the program's thread

std::optional<FlightId> Ahead::request(const Range& host, const void* source) {
  return attempt([&]() -> std::optional<FlightId> {
    check_guards(host);
    std::unique_lock lock(mutex_);
    if (stopped_ || pipeline_.full()) return std::nullopt;
    const FlightId flight = pipeline_.handle_copy({.direction = Direction::to_device,
                                                   .lane = kLane,
                                                   .host = host,
                                                   .memory = MemoryKind::pinned},
                                                  now());
    copies_[flight] = {static_cast<const uint8_t*>(source), host};
    // The program may change a source of which we have a snapshot as soon as it goes on.
    if (reinterpret_cast<uint64_t>(source) != host.address) {
      changed_.wait(lock, [&] { return !reads_for(host); });
    }
    return flight;
  });
}

void Ahead::check_guards(const Range& host) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || pipeline_.guard_of(host) == GuardKind::none) return;
  }
  bool written = false;
  bool by_digest = false;
  for (const GuardBook::Pointer& guard : guards_.find(host)) {
    if (!guard->range.overlaps(host)) continue;
    const auto state = guard->state.load();
    by_digest = by_digest || state != GuardBook::Entry::State::pages;
    if (state == GuardBook::Entry::State::pages) written = written || guards_.written(*guard, host);
  }
  std::vector<Slot> compared;
  if (by_digest) {
    const std::lock_guard lock(mutex_);
    // What a worker is reading now has no digest yet: nobody can tell whether it read it before.
    for (const SlotId id : sealing_) {
      const Slot& slot = slots_[id];
      if (slot.ahead && slot.host.overlaps(host)) pipeline_.handle_written(slot.host, now());
    }
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(compared),
                 [&](const Slot& slot) { return slot.digest && slot.host.overlaps(host); });
  }
  for (const Slot& slot : compared) {
    if (same_digest(slot)) continue;
    const std::lock_guard lock(mutex_);
    pipeline_.handle_written(slot.host, now());
  }
  if (!written) return;
  const std::lock_guard lock(mutex_);
  pipeline_.handle_written(host, now());
}

bool Ahead::same_digest(const Slot& slot) {
  const uint64_t began = pace().begin();
  auto* copy = static_cast<uint8_t*>(memory_.take(slot.host.bytes));
  if (copy == nullptr) return false;
  const bool same =
      read_memory(reinterpret_cast<const void*>(slot.host.address), copy, slot.host.bytes) &&
      constant_time_equal(digest(copy, slot.host.bytes), *slot.digest);
  memory_.give(copy);
  pace().end(Pace::aead_fast, slot.host.bytes, began);
  return same;
}

// GCM's hash under a key of this process. Never leaves it, so the IV may stay the same. Overwrites
// what it has read.
Ahead::Digest Ahead::digest(uint8_t* bytes, uint64_t count) const {
  const Iv iv{};
  const GcmHash hash = digest_key_->open_part(iv, 0, bytes, bytes, count);
  return digest_key_->tag(iv, hash, 0, count);
}

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
    const uint32_t messages = message_count(pipeline_.host_of(flight).bytes);
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

void Ahead::freed(const Range& host) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    pipeline_.handle_freed(host, now());
    pump();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !reads_for(host); });
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

std::optional<Ahead::Turn> Ahead::next() {
  return attempt([&]() -> std::optional<Turn> {
    std::unique_lock lock(mutex_);
    await_turn(lock, [&] { return !pipeline_.waits_for_worker(kLane); });
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
    Turn turn{.flight = flight, .offset = publication_->message * kMessageBytesMax};
    turn.messages = 1 + pipeline_.following(kLane);
    turn.bytes = std::min(turn.messages * kMessageBytesMax, host.bytes - turn.offset);
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
  carrying = this;
  const std::lock_guard lock(mutex_);
  in_flight_ = turn;
  done_ = 0;
}

void Ahead::end(const Turn& turn, bool succeeded) {
  attempt([&] {
    carrying = nullptr;
    std::unique_lock lock(mutex_);
    if (!succeeded) stop_locked();
    if (turn.flight == kNone && !stopped_) {
      pipeline_.handle_published(kLane, first_position_ + turn.messages - 1, now());
    }
    // Messages the driver sealed in a way we could not follow.
    while (turn.flight != kNone && done_ < turn.messages && wait_for_turn(lock))
      pass_message(false);
    in_flight_.reset();
    if (publication_) drop_published(false);
    if (stopped_) return;
    reconcile();
    pump();
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

// --- the driver's thread

Ahead* Ahead::find(uint64_t key, const Iv& iv) {
  if (carrying != nullptr) return carrying;
  for (auto& entry : all) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead == nullptr) continue;
    const std::lock_guard lock(ahead->mutex_);
    const bool follows = ahead->in_flight_ && ahead->key_ == key && ahead->follower_.started();
    if (follows && ahead->follower_.predict(1) == iv) return ahead;
  }
  return nullptr;
}

Ahead::Taken Ahead::take(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule,
                         const Iv& iv, const uint8_t* in, uint64_t bytes) {
  return attempt([&]() -> Taken {
    std::unique_lock lock(mutex_);
    if (stopped_) return {};
    follow(key, schedule, iv);
    if (!in_flight_ || in_flight_->flight == kNone || !is_next(in, bytes)) return {};
    if (!wait_for_turn(lock)) return {};
    Taken taken{.ours = true};
    if (publication_->slot == kNone) return taken;
    const Slot& slot = slots_[publication_->slot];
    const bool fits = slot.record != nullptr && slot.key == key && slot.iv == iv &&
                      slot.host.bytes == bytes && !lost_;
    if (!fits) {  // it is going to be sealed again, perhaps under the same IV
      drop(std::exchange(publication_->slot, kNone), false);
      return taken;
    }
    taken.record = slot.record;
    taken.hash = slot.hash;
    taken.foreseen = slot.ahead;
    return taken;
  });
}

void Ahead::follow(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule, const Iv& iv) {
  const bool known = follower_.started();
  const auto steps = follower_.observe(iv);
  if (known && (!steps || key != key_)) lost_ = true;
  if (steps) followed_ += *steps;
  if (!known) followed_ = first_position_;
  key_ = key;
  schedule_ = schedule;
}

// Is it the turn's next message, as far as length and place tell?
bool Ahead::is_next(const uint8_t* in, uint64_t bytes) const {
  const Turn& turn = *in_flight_;
  if (done_ >= turn.messages) return false;
  const uint64_t at = done_ * kMessageBytesMax;
  if (bytes != std::min(kMessageBytesMax, turn.bytes - at)) return false;
  const Copy& copy = copies_[turn.flight];
  const bool named = in >= copy.source && in < copy.source + copy.host.bytes;
  return !named || in == copy.source + turn.offset + at;
}

// Until the core has something for the lane to do, or `enough`. Only workers can be what it waits
// for, so this thread works with them.
template <typename Enough>
void Ahead::await_turn(std::unique_lock<std::mutex>& lock, Enough&& enough) {
  const auto over = [&] {
    if (!stopped_) pump();
    return stopped_ || !turns_.empty() || enough();
  };
  while (!over()) {
    lock.unlock();
    const bool helped = crew_.help();
    lock.lock();
    if (helped) continue;
    changed_.wait(lock, over);
    pace().go_on_now();
  }
}

// Until the core has given the turn's next message its turn.
bool Ahead::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  if (publication_) return true;
  await_turn(lock, [] { return false; });
  if (stopped_) return false;
  const Publish* next = std::get_if<Publish>(&turns_.front());
  const bool mine =
      next != nullptr && next->flight == in_flight_->flight &&
      next->message * kMessageBytesMax == in_flight_->offset + done_ * kMessageBytesMax;
  if (!mine) {
    stop_locked();  // following() promised it: the books are wrong
    return false;
  }
  publication_ = *next;
  turns_.pop_front();
  return true;
}

void Ahead::give(const Taken& taken) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (!publication_) return;
    const bool exposed = taken.record != nullptr;
    if (stopped_) return drop_published(exposed);
    if (exposed) ++answered_;
    if (taken.foreseen) ++answered_ahead_;
    pass_message(exposed);
  });
}

// The message is the driver's now.
void Ahead::pass_message(bool exposed) {
  const Publish done = *publication_;
  drop_published(exposed);
  pipeline_.handle_published(kLane, done.position, now());
  ++done_;
  pump();
}

void Ahead::drop_published(bool exposed) {
  if (publication_->slot != kNone) drop(publication_->slot, exposed);
  publication_.reset();
}

// --- actions

// Not between the last message of a turn and its end: counters are compared first, and nothing new
// may be on its way then.
void Ahead::pump() {
  if (in_flight_ && in_flight_->flight != kNone && done_ >= in_flight_->messages) return;
  while (!stopped_) {
    const auto action = pipeline_.poll(now());
    if (!action) break;
    run(*action);
  }
  if (pipeline_.failed()) stop_locked();
  if (watched()) tell_changes();
}

void Ahead::run(const Action& action) {
  if (const Seal* seal = std::get_if<Seal>(&action)) {
    start(*seal);
  } else if (const Publish* publish = std::get_if<Publish>(&action)) {
    turns_.emplace_back(*publish);
  } else if (const Pad* pad = std::get_if<Pad>(&action)) {
    turns_.emplace_back(*pad);
  } else if (const Void* gone = std::get_if<Void>(&action)) {
    drop(gone->slot, false);
  } else if (const Guard* guard = std::get_if<Guard>(&action)) {
    guards_.add(guard->range);
  } else if (const Unguard* unguard = std::get_if<Unguard>(&action)) {
    if (guards_.remove(unguard->range)) disarm_later(unguard->range);
  }
}

void Ahead::disarm_later(const Range& range) {
  struct Work {
    GuardBook& guards;
    Range range;
  };
  auto* work = new Work{guards_, range};
  const auto job = [](void* context) {
    const std::unique_ptr<Work> mine(static_cast<Work*>(context));
    mine->guards.disarm(mine->range);
  };
  if (!crew_.post(job, work)) delete work;
}

void Ahead::start(const Seal& seal) {
  auto job = std::make_unique<Job>(Job{.owner = this, .seal = seal});
  if (seal.flight != kNone) {
    const Copy& copy = copies_[seal.flight];
    job->source = copy.source + (seal.host.address - copy.host.address);
  } else {
    const auto block = host_memory_.find(seal.host.address);
    const bool ours = block && block->what.ours && block->range.contains(seal.host);
    if (ours) job->source = reinterpret_cast<const uint8_t*>(seal.host.address);
    for (const GuardBook::Pointer& guard : guards_.find(seal.host)) {
      if (guard->range.contains(seal.host)) job->guard = guard;
    }
  }
  job->key = key_;
  if (follower_.started()) {
    job->schedule = schedule_;
    job->iv = follower_.predict(seal.position - followed_);
  }
  slots_[seal.slot] = {};
  slots_[seal.slot].host = seal.host;
  slots_[seal.slot].ahead = seal.flight == kNone;
  slots_[seal.slot].source = job->source;
  sealing_.push_back(seal.slot);
  const auto work = [](void* context) {
    const std::unique_ptr<Job> mine(static_cast<Job*>(context));
    Slot slot = {};
    const Instant began = now();
    mine->owner->attempt([&] { mine->owner->fill(*mine, slot); });
    if (watched() && slot.record != nullptr) mine->owner->tell_sealed(*mine, began);
    mine->owner->sealed(*mine, slot);
  };
  if (crew_.post(work, job.get())) {
    static_cast<void>(job.release());
  } else {  // nobody to seal ahead, and nobody to take it off the list
    sealing_.pop_back();
    stop_locked();
  }
}

void Ahead::fill(Job& job, Slot& slot) {
  const Range& host = job.seal.host;
  slot.host = host;
  slot.ahead = job.seal.flight == kNone;
  if (job.guard) guards_.arm(*job.guard);
  if (job.schedule == nullptr) return;
  auto* record = static_cast<uint8_t*>(memory_.take(host.bytes));
  if (record == nullptr) return;
  const bool digested = job.guard && job.guard->state.load() == GuardBook::Entry::State::digest;
  const uint8_t* from = job.source;
  if (from == nullptr || digested) {
    const uint64_t began = pace().begin();
    if (!read_memory(reinterpret_cast<const void*>(host.address), record, host.bytes)) {
      memory_.give(record);
      return;
    }
    pace().end(Pace::host_copy, host.bytes, began);
    from = record;
  }
  if (digested && !take_digest(record, slot)) {
    memory_.give(record);
    return;
  }
  slot.hash = seal_in_parts(job, from, record);
  slot.record = record;
  slot.iv = job.iv;
  slot.key = job.key;
}

// In parts that give way to whatever is asked for now, and that all workers share: what is needed
// first is ready first.
GcmHash Ahead::seal_in_parts(const Job& job, const uint8_t* from, uint8_t* record) const {
  const uint64_t bytes = job.seal.host.bytes;
  const uint64_t whole = bytes & ~uint64_t{kGcmBlockBytes - 1};
  std::array<GcmHash, kMessageBytesMax / kPartBytes> hashes;
  const auto length = [&](size_t i) { return std::min(kPartBytes, whole - i * kPartBytes); };
  const size_t parts = (whole + kPartBytes - 1) / kPartBytes;
  crew_.each_behind(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t at = i * kPartBytes;
    hashes[i] =
        job.schedule->seal_part(job.iv, at / kGcmBlockBytes, from + at, record + at, length(i));
    pace().end(Pace::aead_fast, length(i), began);
  });
  GcmHash hash;
  for (size_t i = 0; i < parts; ++i) {
    hash = job.schedule->join(hash, hashes[i], length(i) / kGcmBlockBytes);
  }
  if (whole != bytes) {
    job.schedule->seal_part(job.iv, whole / kGcmBlockBytes, from + whole, record + whole,
                            bytes - whole);
  }
  return hash;
}

bool Ahead::take_digest(const uint8_t* snapshot, Slot& slot) {
  auto* scratch = static_cast<uint8_t*>(memory_.take(slot.host.bytes));
  if (scratch == nullptr) return false;
  std::memcpy(scratch, snapshot, slot.host.bytes);
  const uint64_t began = pace().begin();
  slot.digest = digest(scratch, slot.host.bytes);
  pace().end(Pace::aead_fast, slot.host.bytes, began);
  memory_.give(scratch);
  return true;
}

void Ahead::sealed(const Job& job, const Slot& slot) {
  attempt([&] {
    {
      const std::lock_guard lock(mutex_);
      std::erase(sealing_, job.seal.slot);
      if (stopped_) {
        if (slot.record != nullptr) memory_.give(slot.record);
      } else {
        slots_[job.seal.slot] = slot;
        pipeline_.handle_sealed(job.seal.slot, now());
        pump();
      }
    }
    changed_.notify_all();
  });
}

// What was never exposed is wiped. What was is ciphertext that anybody may have.
void Ahead::drop(SlotId id, bool exposed) {
  Slot& slot = slots_[id];
  if (slot.record != nullptr) memory_.give(slot.record, exposed ? Staging::keep : Staging::wiped);
  slot = {};
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
  for (auto& entry : all) {  // its place is for another
    Ahead* self = this;
    if (entry.compare_exchange_strong(self, nullptr)) break;
  }
  changed_.notify_all();
}

bool Ahead::stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool Ahead::sealing() {
  const std::lock_guard lock(mutex_);
  return !sealing_.empty();
}

std::vector<Ahead::Stats> Ahead::stats_of_all() {
  std::vector<Stats> out;
  for (auto& entry : all) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead == nullptr) break;
    out.push_back(ahead->stats());
  }
  return out;
}

}  // namespace sealane::serve
