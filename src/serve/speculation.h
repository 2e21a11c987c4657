// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are bulk copies sealed ahead in this process? Asked for, excluded, or else decided by what a
// core, a guard and the workers can do here. Decided once, when the runtime starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/pipeline/outlook.h"
#include "core/policy.h"
#include "serve/options.h"

namespace sealane::serve {

struct SpeculationChoice {
  enum class Why : uint8_t {
    excluded,   // by the switches
    asked,      // for, and possible
    pays,       // by the costs
    if_waited,  // by the costs, for a program that waits for its copies
    no_gain,    // by the costs
    no_worker,  // nobody would seal ahead
  };
  Why why = Why::excluded;
  const Policy* policy = nullptr;  // nullptr: nothing is sealed ahead
  SpeculationOutlook outlook{};    // where it was worked out
  bool digests = false;            // instead of page guards
  unsigned threads = 1;            // that share a message
};

// Measures, unless there is nothing to decide. `threads` as of measure_costs().
SpeculationChoice choose_speculation(const Options& options, unsigned threads);

std::string_view to_string(SpeculationChoice::Why why);
// "on: a MiB takes 24.6 us from a slot, 46.3 us sealed when it is asked for (8 threads)", in
// device time.
std::string describe(const SpeculationChoice& choice);

}  // namespace sealane::serve
