// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/copy/bulk_turns.h"

namespace sealane {

// Registered memory is not ours to look at before its turn, and of what others than the CPU can
// write no guard knows what it holds.
bool BulkTurns::may_be_sealed_ahead(const CopyCall& call) const {
  return options_.threads.bulk > 0 && call.host.bytes >= options_.bulk_bytes_min &&
         call.memory != HostKind::registered && (!call.unseen || !options_.rules.unseen_writer);
}

void BulkTurns::handle_added(CopyId id, Instant now) {
  Carried& copy = copies_[id];
  const bool outward = copy.call.direction == Direction::to_host;
  const bool now_or_never =
      outward || copy.side == HostSide::snapshot || !options_.rules.stale_at_turn;
  Speculation* const ahead = outward ? threads_.ahead_of(copy.call) : threads_[copy.thread].ahead;
  const bool bulk = ahead != nullptr && copy.call.host.bytes >= options_.bulk_bytes_min;
  if (!bulk || !now_or_never) return;
  if (ahead->handle_asked(id, copy.call, copy.side, now)) copy.ahead = ahead;
}

void BulkTurns::at_turn(CopyThreadId thread, std::vector<CopyId>& out) {
  out.clear();
  if (!CopyThreads::is_bulk(thread)) return;
  const auto* const queue = threads_.queue_of(thread);
  if (queue == nullptr) return;
  for (const CopyId id : *queue) {
    Carried& copy = copies_[id];
    if (copy.looked || copy.ahead != nullptr || copy.side != HostSide::in_place) continue;
    if (!copies_.may_go(copy)) continue;
    copy.looked = true;
    out.push_back(id);
    if (out.size() == kCopiesToldMax) return;
  }
}

bool BulkTurns::tell_turns(CopyThread& thread, Instant now) {
  // All are asked for before the first has its turn, behind which others are begun: not these.
  for (const CopyId id : thread.queue) {
    Carried& copy = copies_[id];
    if (copy.ahead != nullptr || copy.side != HostSide::in_place || !copy.looked) continue;
    if (thread.ahead->handle_asked(id, copy.call, copy.side, now)) copy.ahead = thread.ahead;
  }
  for (const CopyId id : thread.queue) {
    Carried& copy = copies_[id];
    if (copy.told || !copies_.may_go(copy)) continue;
    if (copy.ahead == nullptr) {
      if (copy.side == HostSide::in_place && !copy.looked) continue;  // its turn came just now
      return true;
    }
    copy.told = true;
    copy.ahead->handle_turn(id, now);
  }
  return false;
}

const Crossing* BulkTurns::take(CopyThread& thread, Instant now) {
  const auto turn = thread.ahead->next_turn(now);
  if (!turn) return nullptr;
  thread.crossing = {.offset = turn->offset, .bytes = turn->bytes, .pads = turn->pads};
  if (turn->copy == kNoCopy) {
    thread.crossing.last = false;
    return &thread.crossing;
  }
  Carried& copy = copies_[turn->copy];
  copy.crossed += turn->bytes;
  thread.crossing.copies = CopyList(turn->copy);
  thread.crossing.last = copy.crossed >= copy.call.host.bytes;
  return &thread.crossing;
}

}  // namespace sealane
