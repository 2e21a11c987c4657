// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every published measurement we know of, next to what the model says. No parameter is fitted to
// the point it is checked against: points that were used for calibration are marked, and those
// that the model misses are shown like the others.
//
// Pure but for the traces, which are read from a directory; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "estimate/interval.h"

namespace sealane::estimate {

struct Check {
  std::string group;  // "PipeLLM"
  std::string what;   // "FlexGen OPT-66B, stock loss"
  std::string unit;   // "%"
  double published_low = 0;
  double published_high = 0;  // the same if it is one number
  double predicted = 0;
  bool calibrated = false;
  std::string source{};
  std::string note{};  // what the comparison assumes; may be empty
  Interval range{};    // four out of five; all zero if nothing was drawn

  // Relative to the published number or the nearer end of the range; 0 inside it.
  double error() const;
  // Points of percent for what is a percentage already.
  bool in_points() const { return unit == "%"; }
  bool is_number() const { return unit != "holds"; }
  // What was published is what the prediction allows for.
  bool inside() const { return range.overlaps(published_low, published_high); }
};

struct ValidationOptions {
  std::string data;  // directory with nsys/; empty: those rows are left out
  std::function<void(const std::string&)> progress;  // may be empty
  uint32_t draws = 0;                                // of platforms, for the intervals
};

struct Validation {
  std::vector<Check> checks;
  std::vector<std::string> notes;  // what was left out, and why
};

// What validate() would read below the directory `data`.
std::vector<std::string> validation_files(const std::string& data);

Result<Validation> validate(const ValidationOptions& options);

}  // namespace sealane::estimate
