// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How sure a prediction is. A model is run again with parameters drawn from their spreads
// (platform/spread.h): the next such run would fall between the least and the largest of n with
// probability (n - 1) / (n + 1), which is four out of five for nine. Of more draws as many of the
// outermost are left out as keeps it there.
//
// It says what the parameters leave open, not what the model leaves out: how often measurements
// fall inside is for `sealane validate` to say. Plain values, pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sealane::estimate {

constexpr uint32_t kDraws = 9;  // fewer cannot say it

// Which of how many; of none, nothing varies.
struct Draw {
  uint32_t index = 0;
  uint32_t count = 0;
};

struct Interval {
  double low = 0;
  double high = 0;

  bool known() const { return low != 0 || high != 0; }
  bool overlaps(double from, double to) const { return low <= to && from <= high; }
};

// What was predicted is always inside.
inline Interval four_in_five(double predicted, std::vector<double> drawn) {
  std::sort(drawn.begin(), drawn.end());
  const size_t n = drawn.size();
  const size_t outside = n < kDraws ? 0 : (n - kDraws) / 10;  // at either end
  if (n == 0) return {};
  return {std::min(predicted, drawn[outside]), std::max(predicted, drawn[n - 1 - outside])};
}

// The interval of each row's `value`; row i of every drawn run is row i of `rows`.
template <typename Row>
void set_range(std::vector<Row>& rows, const std::vector<std::vector<Row>>& drawn,
               double Row::*value, Interval Row::*range) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> values;
    for (const auto& run : drawn) values.push_back(run[i].*value);
    rows[i].*range = four_in_five(rows[i].*value, std::move(values));
  }
}

}  // namespace sealane::estimate
