// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/suggest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sealane::cli {

size_t edit_distance(std::string_view from, std::string_view to) {
  // Three rows of the classic table: two back, one back, current.
  std::vector<size_t> before(to.size() + 1);
  std::vector<size_t> previous(to.size() + 1);
  std::vector<size_t> current(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replace = previous[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[to.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
        return edit_distance(word, a) < edit_distance(word, b);
      });
  // The dashes of an option are no likeness.
  const auto letters = [](const std::string& name) {
    return name.size() - std::min(name.find_first_not_of('-'), name.size());
  };
  if (nearest != names.end() && edit_distance(word, *nearest) <= 1 + letters(*nearest) / 3) {
    return fmt::format("; did you mean '{}'?", *nearest);
  }
  return fmt::format("; there are: {}", fmt::join(names, ", "));
}

}  // namespace sealane::cli
