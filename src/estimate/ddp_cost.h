// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What an all-reduce of one bucket takes, on one GPU: what the fabrics of ddp.h have in common.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "estimate/ddp.h"

namespace sealane::estimate {

struct BucketCost {
  double busy = 0;  // until the next one can begin
  double rest = 0;  // until this one is done, after that
  double wire = 0;
  double seal = 0;
  double verify = 0;
  uint64_t messages = 0;
  uint64_t sealed_bytes = 0;
};

constexpr double gb(double bytes) { return bytes / 1e9; }
constexpr double s(Duration time) { return static_cast<double>(time.count()) / 1e9; }

// How often a rank of `ranks` passes each byte on in an all-reduce by a ring.
constexpr double ring_share(double ranks) { return 2 * (ranks - 1) / ranks; }
// Steps one after the other: those of a ring, or of a tree if they are fewer.
double hops(double ranks);
// Unprotected, at the bus bandwidth people measure.
double open_wire(double bytes, const DdpOptions& options);

// The policies of Fabric::nccl, `off` aside (nccl_fabric.cc).
BucketCost nccl_cost(std::string_view policy, double bytes, const Platform& platform,
                     const DdpOptions& options);

}  // namespace sealane::estimate
