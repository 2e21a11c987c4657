// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A host for every rank, on one machine: network namespaces, each with one interface (`eth0`) of a
// given bandwidth and delay, joined by a bridge in a namespace of its own. Needs root and iproute2,
// and a kernel with netem where there is to be a delay.
//
// Nothing has a name and nobody has to tidy up: a namespace lives as long as a process is in it,
// its interfaces with it. Each is held by a child that dies with the process that made it, however
// that ends.
//
// Concurrency: made by one thread; enter() in any process forked after that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace sealane::nccl {

class Hosts {
 public:
  static constexpr const char* kInterface = "eth0";

  struct Network {
    double gbit_per_s = 10;  // what a host sends at most
    uint32_t delay_us = 0;   // until it arrives
  };

  // Whether there can be any, or a usage error that says what is missing.
  static Status possible(bool with_delay);
  static Result<Hosts> make(int count, const Network& network);
  Hosts(Hosts&& other) noexcept : holders_(std::move(other.holders_)) { other.holders_.clear(); }
  Hosts& operator=(Hosts&&) = delete;
  ~Hosts();

  Status enter(int host) const;  // moves the calling process there

 private:
  Hosts() = default;
  Status hold(int count);
  Status connect(int host, const Network& network) const;

  std::vector<pid_t> holders_;  // the bridge's first, then the hosts'
};

}  // namespace sealane::nccl
