// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver seals a message: has that been done, and is it the one?

#include <algorithm>
#include <utility>

#include "os/pace.h"
#include "serve/ahead.h"

namespace sealane::serve {

// A new channel, or one with a new key, shows itself by the place its first message names. Several
// copies may be made from there at once: then nobody can tell whose message it is.
Ahead* Ahead::find(uint64_t key, const Iv& iv, const uint8_t* in) {
  if (carrying_ != nullptr) return carrying_;
  Ahead* by_place = nullptr;
  bool ambiguous = false;
  for (auto& entry : all_) {
    Ahead* ahead = entry.load(std::memory_order_acquire);
    if (ahead == nullptr) continue;
    const std::lock_guard lock(ahead->mutex_);
    if (!ahead->in_flight_) continue;
    if (ahead->expects(key, iv)) return ahead;
    if (!ahead->expects(in)) continue;
    ambiguous = by_place != nullptr;
    by_place = ahead;
  }
  return ambiguous ? nullptr : by_place;
}

bool Ahead::expects(uint64_t key, const Iv& iv) {
  return key_ == key && follower_.started() && follower_.predict(1) == iv;
}

bool Ahead::expects(const uint8_t* in) {
  return messages_.owner_of({reinterpret_cast<uint64_t>(in), 0}) == MessageOwner::copy;
}

Ahead::Taken Ahead::take(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule,
                         const Iv& iv, const uint8_t* in, uint64_t bytes) {
  return attempt([&]() -> Taken {
    std::unique_lock lock(mutex_);
    if (stopped_) return {};
    follow(key, schedule, iv);
    const MessageOwner owner = messages_.owner_of({reinterpret_cast<uint64_t>(in), bytes});
    if (!in_flight_ || owner == MessageOwner::driver || !wait_for_turn(lock)) return {};
    Taken taken{.ours = true};
    const bool placed = owner == MessageOwner::copy;
    taken.first = messages_.done() == 0 && placed;
    hides_places_ = hides_places_ || !placed;
    if (publication_->slot == kNone) return taken;
    if (!placed && !has_bytes_of(lock, in, bytes)) return {};
    if (stopped_) return {};
    const Slot& slot = slots_[publication_->slot];
    const bool fits = slot.record != nullptr && slot.key == key && slot.iv == iv &&
                      bytes <= slot.host.bytes && !lost_;
    if (!fits) {  // it is going to be sealed again, perhaps under the same IV
      drop(std::exchange(publication_->slot, kNone), false);
      return taken;
    }
    taken.record = slot.record;
    taken.record_bytes = slot.host.bytes;
    taken.hash = slot.hash;
    taken.foreseen = slot.ahead;
    return taken;
  });
}

// Is this message what the slot whose turn it is was sealed from? It may be one of the driver's
// own, which must not carry a byte of the program's. Without the lock: the slot stays while its
// message is being sealed.
bool Ahead::has_bytes_of(std::unique_lock<std::mutex>& lock, const uint8_t* in, uint64_t bytes) {
  const Slot slot = slots_[publication_->slot];
  if (!slot.digest || slot.host.bytes != bytes) return false;
  lock.unlock();
  const uint64_t began = pace().begin();
  const bool same = digest_.of(in, bytes) == *slot.digest;
  pace().end(Pace::host_copy, bytes, began);
  lock.lock();
  return same;
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

// Until the core has something for the lane to do. Only workers can be what it waits for, so this
// thread works with them.
void Ahead::await_turn(std::unique_lock<std::mutex>& lock, Patience patience) {
  const auto over = [&] {
    if (!stopped_) pump();
    if (stopped_ || !turns_.empty()) return true;
    return patience == Patience::for_workers && !pipeline_.waits_for_worker(kLane);
  };
  while (!over()) {
    lock.unlock();
    const bool helped = pool_.help();
    lock.lock();
    if (helped) continue;
    changed_.wait(lock, over);
    pace().go_on_now();
  }
}

// Until the core has given the turn's next message its turn.
bool Ahead::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  if (publication_) return true;
  await_turn(lock, Patience::endless);
  if (stopped_) return false;
  const Publish* next = std::get_if<Publish>(&turns_.front());
  const Turn& turn = *in_flight_;
  const bool mine = next != nullptr && next->flight == turn.flight &&
                    turn.start_of(next->message) == turn.offset + messages_.start();
  if (!mine) {
    stop_locked();  // following() promised it: the books are wrong
    return false;
  }
  publication_ = *next;
  turns_.pop_front();
  return true;
}

void Ahead::give(const Taken& taken, uint64_t bytes) {
  attempt([&] {
    const std::lock_guard lock(mutex_);
    if (!publication_ || !in_flight_) return;
    // Of a record that was left in the middle the rest is wiped: its bytes were sealed otherwise.
    const bool exposed = taken.record != nullptr && taken.used == taken.record_bytes;
    if (stopped_) return drop_published(exposed);
    if (taken.first) message_size_.observe(bytes, in_flight_->bytes);
    if (exposed) ++answered_;
    if (exposed && taken.foreseen) ++answered_ahead_;
    pass_message(exposed, bytes);
  });
}

void Ahead::learn_message_size() {
  if (message_size_.bytes() == pipeline_.message_bytes()) return;
  pipeline_.handle_message_bytes(message_size_.bytes());
}

// The message is the driver's now.
void Ahead::pass_message(bool exposed, uint64_t bytes) {
  const Publish done = *publication_;
  drop_published(exposed);
  pipeline_.handle_published(kLane, done.position, now());
  messages_.advance(bytes);
  pump();
}

void Ahead::drop_published(bool exposed) {
  if (publication_->slot != kNone) drop(publication_->slot, exposed);
  publication_.reset();
}

}  // namespace sealane::serve
