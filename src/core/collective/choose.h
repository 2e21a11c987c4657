// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm carries out a request: the one the cost model finds cheapest. Every rank comes
// to the same answer, because the answer depends on what all ranks agree on and on nothing else.
#pragma once

#include "base/time.h"
#include "core/collective/schedule.h"

namespace sealane {

// What the ranks share. Costs are of one machine class, not measured per run: ranks that measured
// would not agree.
struct Topology {
  bool shared_memory = true;    // between all ranks
  uint32_t most_on_a_host = 1;  // where it is not: ranks that share a host and its network
};

// What the busiest rank is expected to spend.
Duration estimate(const Request& request, const Topology& topology);

// request.algorithm is an override unless it is `automatic`; one that is not possible() gives way.
Algorithm choose(const Request& request, const Topology& topology);

}  // namespace sealane
