// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Has the source of what was sealed ahead been written since? Asked in the request, message by
// message: of a range that was written in one place the others' slots are still right.

#include <cstring>

#include "live/serve/ahead.h"
#include "live/serve/pace.h"

namespace sealane::serve {

void Ahead::check_guards(const Range& host) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || pipeline_.guard_of(host) == GuardKind::none) return;
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
  for (const Range& range : written) pipeline_.handle_written(range, now());
}

void Ahead::check_pages(GuardBook::Entry& guard, const Range& host, std::vector<Range>& written) {
  if (!guards_.written(guard, host)) return;
  uint64_t message_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    message_bytes = pipeline_.message_bytes();
  }
  const uint32_t messages = message_count(guard.range.bytes, message_bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    const Range part = message_range(guard.range, i, message_bytes);
    if (part.overlaps(host) && guards_.written(guard, part)) written.push_back(part);
  }
}

void Ahead::check_digests(const Range& host, std::vector<Range>& written) {
  std::vector<Slot> compared;
  {
    const std::lock_guard lock(mutex_);
    // What a worker is reading now has no digest yet: nobody can tell whether it read it before.
    for (const SlotId id : sealing_) {
      const Slot& slot = slots_[id];
      if (slot.ahead && slot.host.overlaps(host)) written.push_back(slot.host);
    }
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(compared),
                 [&](const Slot& slot) { return slot.digest && slot.host.overlaps(host); });
  }
  for (const Slot& slot : compared) {
    if (!same_digest(slot)) written.push_back(slot.host);
  }
}

// Before the first byte is read. False: its guard turned out to cost more than the slot brings, and
// the core has given it up.
bool Ahead::arm_guard(const Job& job) {
  if (!job.guard) return true;
  guards_.arm(*job.guard);
  if (job.guard->state.load() != GuardBook::Entry::State::digest) return true;
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  if (guards_.guards_pages() && !job.guard->told.exchange(true)) {
    pipeline_.handle_guarded(job.guard->range, GuardKind::digest);
    pump();
  }
  return !pipeline_.slots()[job.seal.slot].orphan;
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

}  // namespace sealane::serve
