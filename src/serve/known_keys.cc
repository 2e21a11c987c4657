// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/known_keys.h"

#include <algorithm>
#include <utility>

#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);

}  // namespace

KnownKey KnownKeys::know(std::span<const uint8_t, Key::kBytes> key, Instant now, bool& fresh) {
  const std::lock_guard lock(mutex_);
  fresh = false;
  // What was made before a fork is not here any more.
  std::erase_if(entries_, [](const Entry& entry) { return !entry.key.alive(); });
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!constant_time_equal(entry->key.secret(), key)) continue;
    entry->used = now;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().known;
  }
  retire_locked(now);
  fresh = true;
  KnownKey known{std::shared_ptr<const SplitGcm>(SplitGcm::make(key)), ++numbers_};
  entries_.insert(entries_.begin(), Entry{*Key::from_bytes(key), known, now});
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

void KnownKeys::retire_sometimes(Instant now) {
  Instant due = look_at_.load(std::memory_order_relaxed);
  if (now >= due && look_at_.compare_exchange_strong(due, now + kLook)) retire(now);
}

size_t KnownKeys::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

KnownKey know_key(std::span<const uint8_t, Key::kBytes> key) {
  bool fresh = false;
  KnownKey known = process().keys.know(key, SteadyClock().now(), fresh);
  if (!fresh) return known;
  Event event;
  event.kind = EventKind::key;
  event.key = known.number;
  report(event);
  return known;
}

}  // namespace sealane::serve
