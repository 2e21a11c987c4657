// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/slot_budget.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace sealane::serve {
namespace {

constexpr Duration kRefusedFor{100'000'000};
constexpr size_t kNodesMax = 1024;

size_t units_for(uint64_t bytes) {
  return (bytes + SlotBudget::kUnitBytes - 1) / SlotBudget::kUnitBytes;
}

}  // namespace

SlotBudget::SlotBudget(const std::string& folder, const CpuTopology& cores,
                       uint64_t shared_bytes_max, uint64_t own_bytes_max)
    : node_(cores.node),
      several_nodes_(cores.nodes > 1),
      own_bytes_max_(std::min(own_bytes_max, shared_bytes_max)),
      units_(folder, "slots", cores.node, shared_bytes_max / kUnitBytes) {}

bool SlotBudget::take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > own_bytes_max_) return false;
  const size_t before = units_for(bytes_);
  const size_t wanted = units_for(bytes_ + bytes);
  if (wanted > before) {
    const Instant now = SteadyClock().now();
    if (now < refused_until_) return false;
    if (units_.want(wanted) < wanted) {
      units_.want(before);
      refused_until_ = now + kRefusedFor;
      return false;
    }
  }
  bytes_ += bytes;
  return true;
}

void SlotBudget::give(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  units_.want(units_for(bytes_));
  refused_until_ = {};
}

// Preferred, not bound: a node that is full must not cost the program its life. By system call:
// libnuma would be one more library in somebody else's process.
void SlotBudget::place(void* memory, uint64_t bytes) const {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  if (!several_nodes_ || node_ >= kNodesMax) return;
  unsigned long nodes[kNodesMax / kBits] = {};
  nodes[node_ / kBits] = 1UL << (node_ % kBits);
  syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, nodes, kNodesMax, 0);
}

void SlotBudget::forget() { units_.forget(); }

std::unique_ptr<SlotBudget> make_slot_budget(const CpuTopology& cores, uint64_t own_bytes_max) {
  const uint64_t memory = read_memory_bytes({}, cores.node);
  const uint64_t shared = memory > 0 ? slot_share(memory) : own_bytes_max;
  return std::make_unique<SlotBudget>("/dev/shm", cores, shared, own_bytes_max);
}

uint64_t SlotBudget::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace sealane::serve
