// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Has the source of what was sealed ahead been written since? Asked when the copy's turn has come
// (of a snapshot: when it is made), message by message: of a range that was written in one place
// the others' slots are still right.

#include <algorithm>
#include <exception>

#include "serve/ahead.h"

namespace sealane::serve {

void Ahead::check_guards(const Range& host) {
  try {
    look_at_guards(host);
  } catch (const std::exception&) {
    stop();
  }
}

void Ahead::look_at_guards(const Range& host) {
  {
    const std::lock_guard lock(mutex_);
    if (speculator_.guard_of(host) == GuardKind::none) return;
  }
  std::vector<Range> written;
  bool by_digest = false;
  for (const GuardBook::Pointer& guard : guards_.find(host)) {
    if (!guard->range.overlaps(host)) continue;
    const auto state = guard->state.load();
    // Nobody has read a byte of what still waits: what is read from now on is what it should be.
    if (state == GuardBook::Entry::State::pages) check_pages(*guard, host, written);
    if (state == GuardBook::Entry::State::digest) by_digest = true;
  }
  if (by_digest) check_digests(host, written);
  if (written.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const Range& range : written) speculator_.handle_written(range, now());
}

void Ahead::check_pages(GuardBook::Entry& guard, const Range& host, std::vector<Range>& written) {
  if (!guards_.written(guard, host)) return;
  uint64_t message_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    message_bytes = speculator_.pipeline().message_bytes();
  }
  const uint32_t messages = message_count(guard.range.bytes, message_bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    const Range part = message_range(guard.range, i, message_bytes);
    if (part.overlaps(host) && guards_.written(guard, part)) written.push_back(part);
  }
}

// What a worker is reading now has no digest yet: nobody can tell whether it read it before.
void Ahead::check_digests(const Range& host, std::vector<Range>& written) {
  std::vector<SlotRecord> compared;
  {
    const std::lock_guard lock(mutex_);
    speculator_.sealing_ahead(host, written);
    records_.find_digested(host, compared);
  }
  std::vector<uint8_t> same(compared.size());
  pool_.each(compared.size(), [&](size_t i) {
    same[i] = records_.same_source(compared[i], stays_mapped(compared[i].host)) ? 1 : 0;
  });
  for (size_t i = 0; i < compared.size(); ++i) {
    if (same[i] == 0) written.push_back(compared[i].host);
  }
}

// Before the first byte is read. False: its guard turned out to cost more than the slot brings, and
// the core has given it up.
bool Ahead::arm_guard(const Job& job) {
  if (!job.guard) return true;
  guards_.arm(*job.guard, job.by_pages);
  if (job.guard->state.load() != GuardBook::Entry::State::digest) return true;
  return tell_and_do([&] {
    if (guards_.guards_pages() && !job.guard->told.exchange(true)) {
      speculator_.handle_guarded(job.guard->range, GuardKind::digest);
    }
    return speculator_.wanted(job.what.slot);
  });
}

// Pinned memory cannot go while somebody reads it: freeing it waits. Other memory may.
bool Ahead::stays_mapped(const Range& host) const {
  const auto block = host_memory_.find(host.address);
  return block && !block->what.registered && block->range.contains(host);
}

}  // namespace sealane::serve
