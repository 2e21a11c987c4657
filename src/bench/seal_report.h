// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane bench seal` found, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <utility>
#include <vector>

#include "bench/seal_trial.h"

namespace sealane::bench {

struct SealReport {
  std::vector<TrialResult> trials;  // at least one; all with the same engines
  std::vector<std::pair<std::string, std::string>> versions;  // engine, library and version
  std::vector<std::string> notes;                             // lines for the reader
  std::string in_use;  // the engine that Sealane seals with here, or the first of those asked for
  bool usual = true;   // the former
  std::vector<std::string> cpu;  // lines: what this CPU lacks, and what that costs
};

// The table, what its words mean, and what it comes to.
std::string seal_table(const SealReport& report);

// memcpy_gb_s, nt_copy_gb_s: {"l2", "dram"}, at records of 64 KiB or the nearest size measured
// results:  per engine, op (seal, open), where and record_bytes: gb_s, vs_memcpy, vs_openssl,
//           spread_pct (of gb_s)
// copies:   the same for the two ways to copy
// best:     the engine in use, at records of 64 KiB (or the nearest size) from DRAM; from L2 if
// that
//           is all there is. best_l2 is always from L2. Which engine it is does not depend on what
//           was measured.
// cpu:      what this CPU lacks, in words
// versions, label, sealane: what was measured. Null stands for what was not.
nlohmann::json seal_json(const SealReport& report);

}  // namespace sealane::bench
