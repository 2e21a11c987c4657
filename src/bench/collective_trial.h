// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures collectives: several systems side by side, in short slices that take turns, because the
// machine drifts faster than a run. Times are medians of slices; ratios are medians of the ratios
// within rounds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/team.h"

namespace sealane::bench {

struct CollectiveRow {
  std::string op;
  uint64_t bytes = 0;
  uint32_t ranks = 0;
  std::string transport;
  std::string system;  // "sealane", "mpi", "gloo"
  std::string mode;    // "sealed", "plain"
  double time_us = 0;
  double p99_us = 0;
  uint64_t wrong = 0;
  std::map<std::string, double> ratio{};  // time, in units of another system's: "plain", "mpi", …

  double algbw_gb_s() const;
  double busbw_gb_s() const;
};

// A system and how to run a slice of it.
struct Contestant {
  std::string system;
  std::string mode;
  std::function<Result<Team::Slice>(const WorkerCommand&)> run;

  // As others' ratios call it: "plain" and "sealed" are ours.
  std::string label() const { return system == "sealane" ? mode : system; }
};

struct CollectivePlan {
  std::string op;
  std::string transport;
  uint32_t ranks = 2;
  uint32_t iterations = 20;
  uint32_t warmup = 1;
  bool check = true;
  bool lockstep = false;  // this process is one of the ranks: nothing may depend on its own clock
};

// All contestants at one size.
Result<std::vector<CollectiveRow>> measure_collective(const CollectivePlan& plan, uint64_t bytes,
                                                      std::vector<Contestant>& contestants);

}  // namespace sealane::bench
