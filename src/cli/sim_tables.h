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

}  // namespace sealane::cli
