// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/wire_plan.h"

#include <algorithm>
#include <iterator>

#include "seal/record.h"
#include "transport/shm_fabric.h"
#include "transport/tcp_fabric.h"

namespace sealane {
namespace {

struct Lengths {
  uint32_t pair_slots;
  uint32_t broadcast_slots;
  uint32_t receive_records;
};
// A slot of shared memory is read where it lies, so the slots of all ranks of a host should fit the
// cache they share; but those of a pair should not fit a reader's own cache, from which each line
// would have to be taken back before it is written again.
constexpr Lengths kShm[] = {{8, 16, 0}, {4, 8, 0}, {2, 4, 0}, {2, 2, 0}};
constexpr Lengths kTcp[] = {{8, 16, 2}, {8, 16, 2}, {4, 8, 2}, {2, 2, 1}};
static_assert(std::size(kShm) == std::size(kTcp));
constexpr uint32_t kPayloadBytesMin = 512;
constexpr uint32_t kPayloadAlignment = 64;

WireShape shape(uint32_t size, const Lengths& lengths, uint32_t payload_bytes) {
  WireShape made;
  made.size = size;
  made.pair_slots = lengths.pair_slots;
  made.broadcast_slots = lengths.broadcast_slots;
  made.receive_records = lengths.receive_records;
  made.record_bytes = static_cast<uint32_t>(record_bytes(payload_bytes));
  return made;
}

}  // namespace

uint32_t WirePlan::ring_records() const { return std::min(shm.pair_slots, tcp.pair_slots); }

size_t wire_bytes(const GroupShape& group, const WirePlan& plan) {
  size_t bytes = 0;
  if (group.most_on_a_host > 1) bytes += ShmFabric::outbox_bytes(plan.shm);
  if (!group.one_host()) bytes += TcpFabric::memory_bytes(plan.tcp, group.streams);
  return bytes;
}

WirePlan plan_wires(const GroupShape& group, uint32_t payload_bytes_wanted) {
  WirePlan plan;
  for (plan.payload_bytes = payload_bytes_wanted;;) {
    for (size_t i = 0; i < std::size(kShm); ++i) {
      plan.shm = shape(group.most_on_a_host, kShm[i], plan.payload_bytes);
      plan.tcp = shape(group.size, kTcp[i], plan.payload_bytes);
      if (wire_bytes(group, plan) <= kWireBytesMax) return plan;
    }
    const uint32_t half = plan.payload_bytes / 2 / kPayloadAlignment * kPayloadAlignment;
    if (half < kPayloadBytesMin) return plan;
    plan.payload_bytes = half;
  }
}

}  // namespace sealane
