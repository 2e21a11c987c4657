// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every start asks of an engine: is it right, how fast is it, which one is chosen. Part of
// engine.h; apart for those who choose among fewer engines.
#pragma once

#include <span>

#include "seal/engine.h"

namespace sealane {

// The specification's case, and a message long enough for every loop: no other engine is asked.
Status known_answers(const Engine& engine);

// One record of 64 KiB from cache, three times; the best counts. In GB/s.
double measure_rate(const Engine& engine);

// The first of `rates` that is within 5 % of the best: choices do not flicker. nullptr if empty.
const Engine* fastest(std::span<const EngineRate> rates);

}  // namespace sealane
