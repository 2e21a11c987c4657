// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Things that were asked for by their names.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/suggest.h"

namespace sealane::cli {

// Those of `all` that were asked for by name, in their own order; all if none was.
template <typename Thing>
Result<std::vector<const Thing*>> choose(const std::vector<Thing>& all,
                                         const std::vector<std::string>& names, const char* what) {
  std::vector<std::string> known;
  known.reserve(all.size());
  for (const Thing& one : all) known.push_back(one.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return usage_error(fmt::format("there is no {} '{}'{}", what, name, did_you_mean(name, known)));
  }
  std::vector<const Thing*> out;
  for (const Thing& one : all) {
    const bool wanted =
        names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    if (wanted) out.push_back(&one);
  }
  return out;
}

}  // namespace sealane::cli
