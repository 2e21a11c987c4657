// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every start asks of an engine: is it right, how fast is it, which one is chosen. Part of
// engine.h; apart for those who choose among fewer engines.
#pragma once

#include <span>
#include <vector>

#include "base/time.h"
#include "seal/engine.h"

namespace sealane {

// The specification's case, and a message long enough for every loop: no other engine is asked.
Status known_answers(const Engine& engine);

// Records of 64 KiB from cache, six behind one another, by each engine in turn; of three turns the
// best record counts. In turns, because a process begins on a core whose clock and wide units are
// still waking up: who was measured first, and once, would be the slowest.
std::vector<EngineRate> measure_rates(std::span<const Engine* const> engines, const Clock& clock);

// The first of `rates` that is within 5 % of the best: choices do not flicker. nullptr if empty.
const Engine* fastest(std::span<const EngineRate> rates);

}  // namespace sealane
