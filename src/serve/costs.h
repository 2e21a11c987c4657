// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the core's choices cost here, measured when somebody first asks: a few milliseconds, once.
// On the emulated GPU the modelled host is measured, because our threads are paced as its cores;
// its times are real ones there too, so many times longer.
#pragma once

#include "core/pipeline/costs.h"

namespace sealane::serve {

// `threads` share a message; one of them is the lane's own. The same answer every time.
Costs measure_costs(unsigned threads);
bool can_guard_pages();  // found out by the same measurement
double dilation();       // of the emulated GPU; 1 elsewhere

}  // namespace sealane::serve
