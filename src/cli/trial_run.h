// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One run of a program for `sealane trial`: started with its output going to files, given so much
// time and no more, and ended with all the processes it started. Decides nothing.
//
// Concurrency: one thread, which must hold a Scratch or otherwise block the signals that end us.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/run_environment.h"
#include "cli/trial_plan.h"

namespace sealane::cli {

struct TrialRun {
  std::vector<std::string> command;
  Environment environment;
  int out = -1;  // descriptors
  int err = -1;
  double limit_s = 0;
};

struct TrialEnd {
  Ending ending = Ending::done;
  int code = 0;
  double seconds = 0;
};

// An io error: it could not be started, or the user interrupted. `tick` is called now and then.
Result<TrialEnd> run_for_trial(const TrialRun& run, const std::function<void(double)>& tick);

// A file whose content is compared: changed by the run or not, and what it holds then.
class WatchedFile {
 public:
  explicit WatchedFile(std::string path);  // before the run
  std::string fingerprint() const;         // after it: "unwritten", "missing", or a hash
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string before_;
};

}  // namespace sealane::cli
