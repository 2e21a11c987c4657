// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What this CPU lacks of the instructions that sealing is fast with, in words: `doctor` and
// `bench seal` say it beside what they measured, because ratios of one CPU are not another's. What
// SEALANE_CPU hides from the engines (base/cpu.h) counts as missing. Pure.
#pragma once

#include <string>
#include <vector>

#include "os/machine.h"

namespace sealane::cli {

// A line of at most 80 columns each; none if nothing is missing.
std::vector<std::string> cpu_gaps(const Cpu& cpu);

}  // namespace sealane::cli
