// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Seeds on several cores. The outcome is that of sim::run(), whatever the number of threads: shares
// are added up in the order of their seeds, and those behind the first violation do not count.
#pragma once

#include "base/result.h"
#include "sim/sim.h"

namespace sealane::cli {

// options.progress is called from several threads, one at a time.
Result<sim::SimOutcome> run_seeds(const sim::SimOptions& options, uint32_t threads);

}  // namespace sealane::cli
