// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that somebody recorded (`sealane record`) in the simulated machine: as cases for seeds,
// how long the part takes that they time themselves, and how often their copies are foreseen, end
// to end and by each predictor alone; there nothing is left out: what is learned from counts, too.
// Deterministic, no threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "sim/compare.h"
#include "sim/programs.h"
#include "sim/sim.h"

namespace sealane::sim {

// Seed 0 is the program as it was recorded; with every other one the driver, its keys, the workers
// or somebody on the bus disturb it.
Case make_recorded_case(const workload::Program& program, uint64_t seed, const Platform& platform);

struct PredictorRate {
  std::string_view name;
  double rate = 0;  // of copies to the device, those that were among its next four guesses
};

struct RecordedHits {
  Foreseen ours;  // speculate
  Foreseen pipellm;
  double tournament = 0;  // of bulk copies to the device, those among its next four guesses
  double paper = 0;       // the same of the paper's rules
  std::vector<PredictorRate> contestants;  // each alone, of all copies to the device
};

// What a program times by two events that it makes one after the other: from recording the first to
// waiting for the second. The last of such parts, if there are several.
struct TimedPart {
  size_t begin = 0;  // the operation that records the first
  size_t end = 0;    // one past the one that waits for the second
};
std::optional<TimedPart> find_timed_part(const workload::Program& program);
// How long that part takes in the simulated machine, behind all that comes before it.
Duration simulate_part(const workload::Program& program, const TimedPart& part, const Setup& setup);

RecordedHits measure_hits(const workload::Program& program, const Platform& platform);

}  // namespace sealane::sim
