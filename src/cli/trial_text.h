// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane trial` makes of what a run wrote: output compared with what changes from run to run
// taken out, the findings of --observe read, and everything that names a place or a person taken
// out of what is sent away. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
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

  // Line by line. `before` is told of each line and expression (both from 0) that are tried next:
  // how long that takes nobody can say.
  using Before = std::function<void(size_t line, size_t mask)>;
  std::string apply(const std::string& text, const Before& before = {}) const;
  const std::string& expression(size_t mask) const { return masks_[mask].text; }

 private:
  struct Mask {
    std::string text;
    std::regex regex;
  };
  std::vector<Mask> masks_;
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

// What the runtime said, among whatever a program says: only sentences that it has (a program may
// well begin its own with "sealane: "), and of these only words that are its own. Its statistics
// and the page are not among them.
std::vector<std::string> lines_of_sealane(const std::string& standard_error);
bool tells_of_wrong_answer(const std::string& line);

// The same with every text in it UTF-8; bytes that are none are replaced.
nlohmann::json with_valid_text(const nlohmann::json& value);

// Names of hosts, people and files, network addresses and anything that looks like a key, replaced.
struct Private {
  std::string host;
  std::string user;
  std::vector<std::string> words;  // more that must not be seen: arguments of the program
};
std::string without_private(const std::string& text, const Private& names);
// Of every text in it: a number is nobody's name, even if an argument looks like it.
nlohmann::json texts_without_private(nlohmann::json value, const Private& names);

}  // namespace sealane::cli
