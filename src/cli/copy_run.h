// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `bench copy` and `bench engines` have in common: programs on the emulated GPU, policy by
// policy, as `sealane run` would start them.
#pragma once

#include "base/try.h"
#include "bench/copy_trial.h"
#include "cli/command.h"
#include "cli/run_environment.h"
#include "cli/run_options.h"

namespace sealane::cli {

inline RunOptions copy_run(const bench::CopySetting& setting, const bench::CopyExample& program,
                           const bench::CopyPolicy& policy, const bench::CopyFiles& files) {
  RunOptions options;
  options.truth = files.truth;
  options.emulate = true;
  options.platform = setting.platform;
  options.enable = policy.enable;
  options.policy = policy.policy;
  options.stats = files.counters;
  options.set("SEALANE_WORKERS", setting.workers);
  if (policy.recorded) options.record = files.trace;
  options.set("SEALANE_EMU_CC", policy.cc ? "on" : "off");
  options.set("SEALANE_EMU_DILATION",
              setting.dilation.empty() ? program.dilation : setting.dilation);
  return options;
}

// Without the outputs that this process was told of: they would cost time, and all runs would write
// the same files.
inline Result<Environment> copy_environment(const RunOptions& options) {
  Environment out;
  for (const OutputVariable& one : kOutputVariables) out.emplace_back(one.name, "");
  SEALANE_LET(const auto own, environment_for(options));
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

template <typename Flags>
void add_policies_and_platform(const Command& command, Flags& flags) {
  command.value("--policies", flags.policies, "NAME,...", "Which, comma-separated [all]");
  command.value("--platform", flags.platform, "P", "The modelled machine [h100-tdx]");
}

}  // namespace sealane::cli
