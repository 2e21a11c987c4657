// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the core's choices cost here, measured when the first lane is opened: a few milliseconds,
// once. On the emulated GPU the modelled host is measured, because our threads are paced as its
// cores.
#pragma once

#include "core/pipeline/costs.h"

namespace sealane::serve {

// `threads` share a message; one of them is the lane's own. The same answer every time.
Costs measure_costs(unsigned threads);

}  // namespace sealane::serve
