// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/guard_book.h"

#include <algorithm>

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
        if (armed && check(*other, other->range)) other->broken.store(true);
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

bool GuardBook::check(Entry& entry, const Range& part) {
  if (entry.broken.load() || unseen_.seen()) return true;
  const auto written = guards_->written(part);
  return !written || *written;  // who cannot tell must assume it
}

bool GuardBook::written(Entry& entry, const Range& part) { return check(entry, part); }

std::vector<GuardBook::Pointer> GuardBook::find(const Range& range) {
  std::vector<Pointer> found;
  const std::lock_guard lock(mutex_);
  for (const Pointer& entry : entries_) {
    if (sealane::pages(entry->range).overlaps(range)) found.push_back(entry);
  }
  return found;
}

}  // namespace sealane::serve
