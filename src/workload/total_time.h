// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What all threads and kernels of a program take together. Whoever replays it adds them up on a
// clock of 64 bits, and waits a few times as long before he takes it for hung. Pure.
#pragma once

#include <variant>

#include "base/result.h"
#include "workload/operation.h"

namespace sealane::workload {

class TotalTime {
 public:
  // A usage error if it becomes more than anybody records. Neither time is below nothing, or
  // beyond the most itself.
  Status add(const Operation& operation) {
    total_ += operation.think;
    if (const auto* launch = std::get_if<Launch>(&operation.action)) total_ += launch->run_time;
    if (total_ <= kMost) return {};
    total_ = kMost;
    return usage_error("up to here the program takes longer than 31 years");
  }

 private:
  static constexpr Duration kMost{1'000'000'000'000'000'000};

  Duration total_{0};
};

}  // namespace sealane::workload
