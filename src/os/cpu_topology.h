// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many of the machine's cores our workers may take: of those this process may run on, on one
// NUMA node, within what its control group allows, half at most, and only as many as others and the
// program itself leave idle. At least one, the thread that asks: it does the work alone if need be.
//
// What cannot be read counts as absent: one node, no quota, no load. Thread-safe where it says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sealane {

// Where the kernel's files are. Tests bring their own.
struct KernelFiles {
  std::string root;  // in front of /proc and /sys
};

struct CpuTopology {
  std::vector<unsigned> own;  // numbers of the cores of our node this process may run on
  size_t node = 0;
  size_t nodes = 1;
  size_t of_node = 1;  // cores of the node, whoever may run on them
  double quota = 1e9;  // cores' worth of time the control group allows
  bool stay = false;   // the process may run on other nodes too: workers are kept on this one

  // The most threads that may share a loop.
  unsigned workers_max() const;
};

// `allowed`: cores the process may run on; `here`: the one the caller runs on, which decides whose
// node it is. The memory our workers read and write was first touched there.
CpuTopology read_cpu_topology(const KernelFiles& files, const std::vector<unsigned>& allowed,
                              unsigned here);
CpuTopology read_cpu_topology();  // of this process, now

// Memory of a node in bytes, or what the control group allows if that is less. 0: cannot be read.
uint64_t read_memory_bytes(const KernelFiles& files, size_t node);

// Looks at the cores' idle time now and then. One thread at a time.
class CoreLoad {
 public:
  CoreLoad(KernelFiles files, std::vector<unsigned> cores)
      : files_(std::move(files)), cores_(std::move(cores)) {}
  // How many of the cores were busy since the last look; the first time, since the start of the
  // machine's last minute, as far as the kernel's load average tells.
  double look();

 private:
  KernelFiles files_;
  std::vector<unsigned> cores_;
  uint64_t busy_ = 0;
  uint64_t all_ = 0;
  bool looked_ = false;
};

// The threads that should share a loop when others keep `busy` cores busy, of which `workers` is
// what our workers use themselves.
unsigned workers_for(const CpuTopology& cores, double busy, double workers);

// --- the parts that read the kernel's texts
std::vector<unsigned> parse_core_list(std::string_view list);  // "0-2,8" is 0 1 2 8
double parse_quota(std::string_view cpu_max);                  // "150000 100000" is 1.5
std::string group_of(std::string_view cgroup, std::string_view controller);  // /proc/self/cgroup

}  // namespace sealane
