// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/guard_book.h"

#include <algorithm>

#include "core/pipeline/lane_books.h"

namespace sealane::serve {

GuardBook::GuardBook(bool pages) {
  if (!pages) return;
  if (auto opened = PageGuards::open()) guards_.emplace(*std::move(opened));
}

GuardBook::Pointer GuardBook::add(const Range& range) {
  auto entry = std::make_shared<Entry>(range);
  const std::lock_guard lock(mutex_);
  entries_.push_back(entry);
  return entry;
}

bool GuardBook::remove(const Range& range) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Pointer& entry) { return entry->range == range; });
  if (found == entries_.end()) return false;
  const bool armed = (*found)->state.load() == Entry::State::pages;
  entries_.erase(found);
  return armed;
}

// Not where another guard holds a page too: taking its protection away would count as a write.
void GuardBook::disarm(const Range& range) {
  const std::lock_guard arming(arming_);
  if (find_pages(range).empty()) static_cast<void>(guards_->disarm(range));
}

void GuardBook::arm(Entry& entry, bool by_pages) {
  std::call_once(entry.once, [&] {
    const std::lock_guard arming(arming_);
    if (guards_) {
      for (const Pointer& other : find_pages(entry.range)) {
        const bool armed = other->state.load() == Entry::State::pages;
        if (armed && written(*other, other->range)) other->broken.store(true);
      }
    }
    bool armed = by_pages && guards_ && !unseen_.possible() && guards_->arm(entry.range);
    // Who could write unseen may have come before the guard: he is looked for once it is there, by
    // this worker and not in the request. Who pins pages later faults on them, and the guard sees.
    if (armed && unseen_.possible_since(SteadyClock().now())) {
      static_cast<void>(guards_->disarm(entry.range));
      armed = false;
    }
    entry.state.store(armed ? Entry::State::pages : Entry::State::digest);
  });
}

// Those that share a page with it.
std::vector<GuardBook::Pointer> GuardBook::find_pages(const Range& range) {
  return find(sealane::pages(range));
}

bool GuardBook::written(Entry& entry, const Range& part) {
  if (entry.broken.load() || unseen_.seen()) return true;
  const auto seen = guards_->written(part);
  return !seen || *seen;  // who cannot tell must assume it
}

bool GuardBook::find_written(const Range& host, uint64_t message_bytes, std::vector<Range>& out) {
  bool by_digest = false;
  for (const Pointer& guard : find(host)) {
    const auto state = guard->state.load();
    // Nobody has read a byte of what still waits: what is read from now on is what it should be.
    if (state == Entry::State::waiting || !guard->range.overlaps(host)) continue;
    by_digest = by_digest || state == Entry::State::digest;
    if (state == Entry::State::digest || !written(*guard, host)) continue;
    const uint32_t messages = message_count(guard->range.bytes, message_bytes);
    for (uint32_t i = 0; i < messages; ++i) {
      const Range part = message_range(guard->range, i, message_bytes);
      if (part.overlaps(host) && written(*guard, part)) out.push_back(part);
    }
  }
  return by_digest;
}

std::vector<GuardBook::Pointer> GuardBook::find(const Range& range) {
  std::vector<Pointer> found;
  const std::lock_guard lock(mutex_);
  for (const Pointer& entry : entries_) {
    if (sealane::pages(entry->range).overlaps(range)) found.push_back(entry);
  }
  return found;
}

}  // namespace sealane::serve
