// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurement behind `sealane bench copy`: one example on the emulated GPU under one policy, in
// a process of its own, in device time.
//
// End-to-end time and the hash of what was computed are the example's own (events, so device time).
// Blocked time is what the program's threads spent inside copy calls: without our runtime as the
// emulated driver counts it, with it as our statistics do, which stand one call further out.
//
// Concurrency: one thread. Failure: an example that fails, hangs or computes something else is an
// error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sealane::bench {

struct CopyExample {
  std::string name;
  std::string program;  // below the setting's directory, or a whole path
  std::vector<std::string> arguments;
  std::string dilation{};   // unless the setting has one; empty: chosen by the driver
  bool timed_only = false;  // copies and waits are those of the timed part, not of the whole run
};

struct CopyPolicy {
  std::string name;
  bool cc = true;
  std::string enable{};   // of the runtime, which watches all of them
  std::string policy{};   // or a set of switches by its name
  bool recorded = false;  // what the program copies and launches is written down, too

  bool ours() const { return enable != "none"; }
};

const std::vector<CopyExample>& copy_examples();
const std::vector<CopyPolicy>& copy_policies();

struct CopyRun {
  double total_s = 0;
  double blocked_s = 0;
  double waits_s = 0;  // callers in synchronising calls
  double hit_rate = 0;
  double tokens_per_s = 0;
  double overrun = 0;  // this machine's own work that did not fit its modelled time, of all time
  uint64_t copies = 0;
  uint64_t bytes = 0;
  std::string hash;
  std::string about;  // which versions ran, of programs that say so

  // What measured this machine rather than the modelled one is none of that one's figures.
  static constexpr double kOverrunMax = 0.05;
  bool in_time() const { return overrun <= kOverrunMax; }
};

// Files a run writes.
struct CopyFiles {
  std::string counters;  // the runtime's
  std::string truth;     // the emulated GPU's
  std::string trace;     // of a policy under which the program is recorded
};

struct CopySetting {
  std::string examples;  // their directory
  std::string scratch;   // a directory for files
  std::string platform;
  std::string dilation;  // empty: the example's
  std::string workers;   // empty: chosen by the runtime

  // How a process comes under a policy: what it gives is called in the process that then becomes
  // the example.
  using Entering = std::function<void()>;
  std::function<Result<Entering>(const CopySetting&, const CopyExample&, const CopyPolicy&,
                                 const CopyFiles&)>
      under;
};

CopyFiles files_of(const CopyExample& example, const CopyPolicy& policy,
                   const CopySetting& setting);

Result<CopyRun> run_copy_example(const CopyExample& example, const CopyPolicy& policy,
                                 const CopySetting& setting);

}  // namespace sealane::bench
