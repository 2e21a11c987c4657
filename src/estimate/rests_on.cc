// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/rests_on.h"

#include <algorithm>

#include "base/check.h"
#include "platform/spread.h"

namespace sealane::estimate {

std::vector<Unknown> unknowns_of(const Platform& platform,
                                 const std::function<Values(const Platform&)>& predict) {
  std::vector<Unknown> unknowns;
  for (const Mover& mover : movers_of(platform)) {
    unknowns.push_back({mover.name, mover.kind, mover.spread, [=](int direction) {
                          return predict(moved(platform, mover.name, direction));
                        }});
  }
  return unknowns;
}

Result<std::vector<Leaning>> rests_on(std::span<const double> predicted,
                                      std::span<const Unknown> unknowns,
                                      const std::function<void(const std::string&)>& progress) {
  std::vector<Leaning> leanings;
  for (const Unknown& unknown : unknowns) {
    if (unknown.spread <= 0) continue;
    if (progress) progress(unknown.name);
    Leaning leaning{.name = unknown.name, .kind = unknown.kind, .spread = unknown.spread};
    for (const double value : predicted) leaning.between.push_back({value, value});
    for (const int direction : {-1, 1}) {
      const Values values = unknown.predict(direction);
      if (!values) return values.error();
      SEALANE_CHECK(values->size() == predicted.size(), "a row more or less than predicted");
      for (size_t i = 0; i < values->size(); ++i) {
        Interval& between = leaning.between[i];
        between.low = std::min(between.low, (*values)[i]);
        between.high = std::max(between.high, (*values)[i]);
        leaning.moves = std::max(leaning.moves, between.high - between.low);
      }
    }
    if (leaning.moves > 0) leanings.push_back(std::move(leaning));
  }
  std::stable_sort(leanings.begin(), leanings.end(),
                   [](const Leaning& a, const Leaning& b) { return a.moves > b.moves; });
  return leanings;
}

}  // namespace sealane::estimate
