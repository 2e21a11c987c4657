// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a seed runs: a program, and the machine and faults it meets. Programs follow CUDA's rules (a
// pinned source is not touched while its copy is in flight); everything else is fair.
#pragma once

#include <cstdint>

#include "sim/sim.h"
#include "workload/operation.h"

namespace sealane::sim {

struct Case {
  workload::Program program;
  Setup setup;
};

Case make_case(Mode mode, uint64_t seed, uint64_t ops, const Platform& platform);

}  // namespace sealane::sim
