// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Examples under policies, round by round: every round runs all policies of a case after another,
// so that they meet the same machine, in an order shuffled anew.
//
// Concurrency: one thread.
// Failure:     a policy under which something else is computed than under another is an error.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/copy_report.h"

namespace sealane::bench {

struct Rounds {
  size_t least = 1;
  double seconds = 0;  // more, as long as they end within this
};

// Adds one run per round to every row; says what it does next, and how long all may take. How many
// rounds it were.
Result<size_t> run_rounds(std::vector<CopyRow>& rows, const CopySetting& setting,
                          const Rounds& rounds,
                          const std::function<void(const std::string&)>& show);

}  // namespace sealane::bench
