// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/known_keys.h"

#include <atomic>
#include <utility>

#include "serve/events.h"

namespace sealane::serve {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);

KnownKeys& keys_of_process() {
  static KnownKeys& all = *new KnownKeys;
  return all;
}

}  // namespace

KnownKey KnownKeys::know(std::span<const uint8_t, Key::kBytes> key, Instant now, bool& fresh) {
  const std::lock_guard lock(mutex_);
  fresh = false;
  // What was made before a fork is not here any more.
  std::erase_if(entries_, [](const Entry& entry) { return !entry.key.alive(); });
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!constant_time_equal(entry->key.secret(), key)) continue;
    entry->used = now;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->known;
  }
  retire_locked(now);
  fresh = true;
  KnownKey known{std::shared_ptr<const SplitGcm>(SplitGcm::make(key)), ++numbers_};
  entries_.push_front({*Key::from_bytes(key), known, now});
  if (entries_.size() > kKeysMax) entries_.pop_back();
  return known;
}

void KnownKeys::retire(Instant now) {
  const std::lock_guard lock(mutex_);
  retire_locked(now);
}

void KnownKeys::retire_locked(Instant now) {
  std::erase_if(entries_, [now](const Entry& entry) {
    const bool held = entry.known.schedule != nullptr && entry.known.schedule.use_count() > 1;
    return !held && now - entry.used > kGrace;
  });
}

size_t KnownKeys::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

KnownKey know_key(std::span<const uint8_t, Key::kBytes> key) {
  bool fresh = false;
  KnownKey known = keys_of_process().know(key, SteadyClock().now(), fresh);
  if (!fresh) return known;
  Event event;
  event.kind = EventKind::key;
  event.key = known.number;
  report(event);
  return known;
}

void retire_keys() {
  static std::atomic<Instant> next{Instant()};
  const Instant now = SteadyClock().now();
  Instant due = next.load(std::memory_order_relaxed);
  if (now < due || !next.compare_exchange_strong(due, now + kLook)) return;
  keys_of_process().retire(now);
}

}  // namespace sealane::serve
