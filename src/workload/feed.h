// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that is written while it runs: what a serving engine does next depends on what has
// arrived and on how long the last step took, which only whoever runs it can say.
//
// One thread makes all calls. Not synchronised.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "workload/operation.h"

namespace sealane::workload {

// What a run has achieved so far, warm-up left out.
struct Achieved {
  Duration time{0};
  double units = 0;                 // tokens, requests, bytes: the workload says which
  std::vector<Duration> latencies;  // of requests, where there are any

  double per_second() const {
    return time > Duration{0} ? units / (static_cast<double>(time.count()) / 1e9) : 0;
  }
};

class Feed {
 public:
  virtual ~Feed() = default;

  // Called when everything written so far has returned, first with an empty past. Appends what the
  // program does next; false when it is at its end.
  virtual bool extend(Instant now, Program& program) = 0;

  virtual const Achieved& achieved() const = 0;
};

}  // namespace sealane::workload
