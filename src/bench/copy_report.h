// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane bench copy` found, for people and for programs.
//
// A run in which this machine's own work did not fit into its modelled time (CopyRun::overrun)
// measured this machine, not the modelled one. Such runs are left out of medians as long as there
// are others; a figure that has nothing else is marked and not compared.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

#include "bench/copy_trial.h"
#include "bench/interleave.h"

namespace sealane::bench {

// An example with a number of workers (empty: as the runtime chooses).
struct CopyCase {
  const CopyExample* example;
  std::string workers;

  bool operator==(const CopyCase&) const = default;
  std::string name() const;
};

struct CopyRow {
  CopyCase what;
  const CopyPolicy* policy;
  std::vector<CopyRun> runs;            // one per round
  std::optional<double> simulated_s{};  // what the simulator says of total_s

  bool in_time() const;                            // one run at least kept the modelled pace
  Summary summary(double CopyRun::*figure) const;  // of those that did, or of all if none did
  double median(double CopyRun::*figure) const { return summary(figure).median; }
};

struct CopyReport {
  std::string platform;
  size_t rounds = 0;
  std::vector<CopyRow> rows;  // those of a case together, at least one, with one run at least
};

// What a policy leaves of what stock CC mode costs over CC off, "?" if that is not known, "" for
// those two themselves.
std::string loss_left(const CopyReport& report, const CopyRow& row);
// "9.81", or "9.81 !" if it is this machine's own.
std::string milliseconds(const CopyRow& row, double CopyRun::*figure);
// The interquartile range of its rounds in percent, "-" if there is one only.
std::string spread(const CopyRow& row, double CopyRun::*figure);
// Which figures are of this machine rather than of the modelled one; empty if none is.
std::string overrun_lines(const CopyReport& report);
// Where the policy `sealane` took longer than one of its own parts alone, by more than rounds
// differ among themselves: by how much, and why that can be. Empty if nowhere.
std::string slower_lines(const CopyReport& report);

// A table for every case, what its words mean, and which figures are none.
std::string copy_tables(const CopyReport& report);
// Totals beside what the simulator says: what each step from stock on takes away of what stock CC
// mode costs, and by how much the two differ. Of rows that have both.
std::string simulated_tables(const CopyReport& report);

// What a row has whatever was run: policy, total_s, spread_pct, blocked_s, tokens_per_s, overrun,
// in_time, copies, bytes, and workers if they were given.
nlohmann::json row_json(const CopyRow& row);

// rows: per example and policy (and workers, if they were given) the medians of total_s, blocked_s,
//       hit_rate and tokens_per_s; spread_pct of total_s; overrun: the share of the time by which
//       runs did not fit, in_time: false if none fitted; copies and bytes; simulated_s if it was.
nlohmann::json copy_json(const CopyReport& report);

}  // namespace sealane::bench
