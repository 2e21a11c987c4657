// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the operating system says of this machine and of what this process may take. What cannot be
// read stays at its default, "unknown": nothing here fails. Safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealane {

enum class Tee { none, tdx, sev };  // the trusted environment this machine is a guest of

struct Cpu {
  std::string model;                  // empty if the kernel does not say
  std::vector<std::string> features;  // of the kernel's flags, those that matter for sealing
};

struct Machine {
  Cpu cpu;
  unsigned cores = 1;  // this process may run on
  unsigned numa_nodes = 1;
  std::optional<uint64_t> lock_bytes_max;  // memory this process may lock; nothing: no limit
  bool swap_on = false;
  Tee tee = Tee::none;
};

Machine read_machine();

// The parts that read the kernel's texts.
Cpu parse_cpuinfo(std::string_view cpuinfo);
bool has_swap(std::string_view swaps);         // /proc/swaps
bool may_lock_any(std::string_view status);    // CAP_IPC_LOCK, /proc/self/status
unsigned count_listed(std::string_view list);  // "0-3,8" is 5

}  // namespace sealane
