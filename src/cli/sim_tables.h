// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane sim --hits` and `--steps`: the patterns under the policies people compare, as tables for
// people and as JSON for programs, one line per platform.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sealane::cli {

enum class SimTable { hits, steps };

// `json` as everywhere: empty is none, - is stdout and no text.
Status show_sim_table(SimTable table, const std::vector<std::string>& platforms,
                      const std::string& json);

// `sealane sim --hits TRACE...`: of each recorded program, end to end and by each predictor alone.
Status show_trace_hits(const std::vector<std::string>& traces, const std::string& platform,
                       const std::string& json);

}  // namespace sealane::cli
