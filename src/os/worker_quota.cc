// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/worker_quota.h"

#include <algorithm>

namespace sealane {

// All processes together may have half of the node's cores.
WorkerQuota::WorkerQuota(CpuTopology cores, KernelFiles files, const std::string& slots_folder)
    : cores_(std::move(cores)),
      load_(std::move(files), cores_.own),
      slots_(slots_folder, "workers", cores_.node, std::max<size_t>(1, cores_.of_node / 2)) {}

std::unique_ptr<WorkerQuota> WorkerQuota::make() {
  return std::make_unique<WorkerQuota>(read_cpu_topology(), KernelFiles{}, "/dev/shm");
}

unsigned WorkerQuota::consider(double used) {
  const unsigned wanted = workers_for(cores_, load_.look(), used) - 1;
  return static_cast<unsigned>(slots_.want(wanted));
}

unsigned WorkerQuota::rest() {
  return static_cast<unsigned>(slots_.want(std::min(1u, workers_max())));
}

}  // namespace sealane
