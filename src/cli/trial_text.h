// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane trial` makes of what a run wrote: output compared with what changes from run to run
// taken out, the findings of --observe read, and everything that names a place or a person taken
// out of what is sent away. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <regex>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/trial_plan.h"

namespace sealane::cli {

// What may differ between two runs of one program.
class Masks {
 public:
  // `usual`: times, rates, dates, addresses of memory, numbers of processes. A usage error names
  // the expression that is none.
  static Result<Masks> make(bool usual, const std::vector<std::string>& expressions);

  std::string apply(const std::string& text) const;  // line by line

 private:
  std::vector<std::regex> masks_;
};

// "line 3: 'loss 0.1' instead of 'loss 0.2'"; empty if both are the same.
std::string first_difference(const std::string& first, const std::string& now);

// What --observe found: "observed" of the run's --stats.
struct ObservedPage {
  struct Check {
    std::string mark;  // "yes", "no, copes", "NO", "?"
    std::string what;
    std::string found;
  };
  bool there = false;
  Sight sight = Sight::unknown;
  std::vector<Check> checks;
  std::string verdict;
};
// `stats` may be anything: a program that never used the GPU, or crashed, wrote none.
ObservedPage read_observed(const nlohmann::json& stats);
bool says_not_confidential(const std::string& standard_error);

// Lines of Sealane's among others. Its statistics and the page are not among them.
std::vector<std::string> lines_of_sealane(const std::string& standard_error);
bool tells_of_wrong_answer(const std::string& line);

// Names of hosts, people and files, network addresses and anything that looks like a key, replaced.
struct Private {
  std::string host;
  std::string user;
  std::vector<std::string> words;  // more that must not be seen: arguments of the program
};
std::string without_private(const std::string& text, const Private& names);

}  // namespace sealane::cli
