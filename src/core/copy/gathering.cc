// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/copy/gathering.h"

#include <algorithm>

#include "core/copy/copy_table.h"

namespace sealane {

void Gathering::begin(Range host, uint64_t device) {
  copies_ = host_pieces_ = device_pieces_ = 1;
  bytes_ = host.bytes;
  host_end_ = host.end();
  device_end_ = device + host.bytes;
}

bool Gathering::admit(Range host, uint64_t device) {
  if (copies_ == costs_.copies_max || bytes_ + host.bytes > costs_.bytes_max) return false;
  Gathering with = *this;
  ++with.copies_;
  with.bytes_ += host.bytes;
  with.host_pieces_ += host.address == host_end_ ? 0 : 1;
  with.device_pieces_ += device == device_end_ ? 0 : 1;
  with.host_end_ = host.end();
  with.device_end_ = device + host.bytes;
  if (with.cost() >= cost() + costs_.toll) return false;
  *this = with;
  return true;
}

Duration Gathering::cost() const {
  Duration out = costs_.toll;
  if (host_pieces_ > 1) {
    out += Duration(static_cast<int64_t>(costs_.copy_ns_per_byte * static_cast<double>(bytes_)));
  }
  if (device_pieces_ > 1) out += costs_.scatter * static_cast<int64_t>(device_pieces_);
  return out;
}

namespace {

// End to end, but in two allocations: the driver would refuse them as one copy.
bool straddle(const CopyCall& a, const CopyCall& b) {
  return (a.device_block != b.device_block && a.device_range().end() == b.device_address) ||
         (a.host_block != b.host_block && a.place().end() == b.place().address);
}

// Behind `last`, and does it pay?
bool joins(Gathering& group, const Carried& leader, const Carried& last, const Carried& copy) {
  return copy.after == leader.after && !straddle(last.call, copy.call) &&
         group.admit(copy.call.place(), copy.call.device_address);
}

constexpr size_t kLookMax = 64;  // of those that wait

}  // namespace

void gather(const CopyTable& copies, CopyThread& thread, size_t first, const CrossingCosts& costs) {
  const Carried& leader = copies[thread.queue[first]];
  if (leader.call.host.bytes > costs.bytes_max) return;
  Crossing& crossing = thread.crossing;
  Gathering group(costs);
  group.begin(leader.call.place(), leader.call.device_address);
  const size_t end = std::min(thread.queue.size(), first + kLookMax);
  for (size_t i = first + 1; i < end && !crossing.copies.full(); ++i) {
    const Carried& copy = copies[thread.queue[i]];
    const CopyId last = crossing.copies[crossing.copies.size() - 1];
    if (!copies.may_go(copy, crossing.copies)) continue;
    if (!joins(group, leader, copies[last], copy)) continue;
    crossing.copies.push_back(thread.queue[i]);
    crossing.bytes += copy.call.host.bytes;
  }
  if (crossing.copies.size() > 1) crossing.together = group;
}

bool has_company(const CopyTable& copies, const CopyThread& thread, size_t at,
                 const CrossingCosts& costs) {
  const Carried& leader = copies[thread.queue[at]];
  if (leader.call.host.bytes > costs.bytes_max) return false;
  Gathering group(costs);
  group.begin(leader.call.place(), leader.call.device_address);
  const auto begin = thread.queue.begin() + static_cast<ptrdiff_t>(at);
  const auto end = begin + static_cast<ptrdiff_t>(std::min(thread.queue.size() - at, kLookMax));
  return std::any_of(begin + 1, end,
                     [&](CopyId id) { return joins(group, leader, leader, copies[id]); });
}

}  // namespace sealane
