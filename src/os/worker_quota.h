// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many workers a pool may have at work, now: what the cores and their load leave
// (cpu_topology.h), within what all processes of the user may have together (shared_units.h).
// Looked at again now and then; who rests gives its slots back.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>

#include "os/cpu_topology.h"
#include "os/shared_units.h"

namespace sealane {

class WorkerQuota {
 public:
  WorkerQuota(CpuTopology cores, KernelFiles files, const std::string& slots_folder);
  // Of this process.
  static std::unique_ptr<WorkerQuota> make();

  // Besides the thread that asks, as below.
  unsigned workers_max() const { return cores_.workers_max() - 1; }
  // How many may work from now on; `used`: cores' worth of time they took since the last time.
  unsigned consider(double used);
  // Nobody has asked for anything for a while: one stays, for whoever comes next.
  unsigned rest();
  void forget() { slots_.forget(); }

  const CpuTopology& cores() const { return cores_; }

 private:
  const CpuTopology cores_;
  CoreLoad load_;
  SharedUnits slots_;
};

}  // namespace sealane
