// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How much locked memory slots may take: all processes of a user together a share of the NUMA
// node's memory, each what it was told (--slot-mb). Memory is claimed before it is mapped, in units
// that processes share as workers do (shared_units.h): those of a process that dies are free at
// once. It does not grow with what a program copies: who finds none left seals less ahead.
//
// Failure: where there is nothing to share by, only the process's own bound holds.
// Thread-safe. A claim takes a few system calls; one that was refused is not tried again for a
// while, unless this process gives something back.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "os/cpu_topology.h"
#include "os/shared_units.h"

namespace sealane::serve {

// What slots of all processes may take of a node with so much memory.
constexpr uint64_t slot_share(uint64_t node_bytes) { return node_bytes / 16; }

class SlotBudget {
 public:
  static constexpr uint64_t kUnitBytes = 4_MiB;

  // `folder`: /dev/shm, or a test's. `shared`: of all processes on the node.
  SlotBudget(const std::string& folder, const CpuTopology& cores, uint64_t shared_bytes_max,
             uint64_t own_bytes_max);
  SlotBudget(const SlotBudget&) = delete;
  SlotBudget& operator=(const SlotBudget&) = delete;

  bool take(uint64_t bytes);
  void give(uint64_t bytes);
  // Puts memory that was just mapped where the workers are. Elsewhere it is slower, not wrong.
  void place(void* memory, uint64_t bytes) const;
  void forget();  // in the child of a fork: what is claimed is the parent's

  uint64_t bytes() const;
  uint64_t bytes_max() const { return own_bytes_max_; }

 private:
  const size_t node_;
  const bool several_nodes_;
  const uint64_t own_bytes_max_;
  mutable std::mutex mutex_;
  SharedUnits units_;
  uint64_t bytes_ = 0;
  Instant refused_until_{};
};

// Of this process, whose workers have these cores.
std::unique_ptr<SlotBudget> make_slot_budget(const CpuTopology& cores, uint64_t own_bytes_max);

}  // namespace sealane::serve
