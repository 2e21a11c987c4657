// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a prediction rests on: each number that may be off, put alone at either end of its spread.
// The ones that move it most are those to measure first. Pure but for `predict`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "estimate/interval.h"
#include "platform/platform.h"

namespace sealane::estimate {

// Values of all rows, in their order.
using Values = Result<std::vector<double>>;

struct Unknown {
  std::string name;
  Knowledge kind = Knowledge::assumed;
  double spread = 0;
  std::function<Values(int direction)> predict;  // with it above (1) or below (-1) what is written
};

struct Leaning {
  std::string name;
  Knowledge kind = Knowledge::assumed;
  double spread = 0;
  std::vector<Interval> between{};  // by row: where it lies with the number at either end
  double moves = 0;                 // the row that it moves most, by so much
};

// The numbers of a platform; `predict` with the platform they are changed in.
std::vector<Unknown> unknowns_of(const Platform& platform,
                                 const std::function<Values(const Platform&)>& predict);

// Those that move any row, the one that moves most first. `progress` may be empty.
Result<std::vector<Leaning>> rests_on(std::span<const double> predicted,
                                      std::span<const Unknown> unknowns,
                                      const std::function<void(const std::string&)>& progress);

}  // namespace sealane::estimate
