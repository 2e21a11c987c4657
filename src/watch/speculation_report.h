// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What sealing ahead did, lane by lane: as JSON for --stats, as lines for its summary. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "serve/live_speculator.h"
#include "watch/counts.h"

namespace sealane::serve {

// The object "speculation". Counts are those of `counts`, the whole run's or a range's; what is not
// a count (who leads, what slots hold, how predictors fared) is as of now.
void write_speculation(JsonWriter& json, const Counts& counts,
                       const std::vector<SpeculationStats>& lanes);

// Nothing if no lane was asked for a copy.
std::string speculation_lines(const Counts& whole, const std::optional<Counts>& profiled,
                              const std::vector<SpeculationStats>& lanes);

}  // namespace sealane::serve
