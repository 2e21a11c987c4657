// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the simulator says of the examples that `sealane bench copy` measures: each is recorded once
// on the emulated GPU, without CC, and the part that it times runs in the simulated machine under
// every policy, on the same platform, with as many workers and the guards the runtime has there.
#pragma once

#include <vector>

#include "bench/copy_report.h"

namespace sealane::cli {

// Fills in CopyRow::simulated_s.
Status simulate_copies(std::vector<bench::CopyRow>& rows, const bench::CopySetting& setting);

}  // namespace sealane::cli
