// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a program is put under the runtime, on the emulated GPU, or both: as variables of its
// environment. `run`, `record` and `bench copy` share it.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sealane::cli {

// A flag whose value goes to the emulated driver or to the preload as it is; they say what they
// accept.
struct Switch {
  const char* flag;
  const char* variable;
  const char* help;
  std::string value;
};

struct RunOptions {
  bool emulate = false;
  bool observe = false;
  std::string platform;
  std::string pacing;
  std::string enable;  // empty: everything, or nothing on the emulated GPU
  std::string policy;  // instead: a set of switches that has a name
  std::string stats;   // files; empty: none
  std::string metrics;
  std::string trace;
  std::string record;
  std::vector<Switch> switches = {
      {"--cc", "SEALANE_EMU_CC", "confidential mode: on (default) or off", {}},
      {"--gpus", "SEALANE_EMU_GPUS", "how many emulated GPUs (1)", {}},
      {"--memory", "SEALANE_EMU_MEMORY", "memory of each, as 512M or 4G", {}},
      {"--dilation", "SEALANE_EMU_DILATION", "K: a modelled second takes K real ones (auto)", {}},
      {"--kernels", "SEALANE_EMU_KERNELS", "shared objects with kernels, colon-separated", {}},
      {"--truth", "SEALANE_EMU_STATS", "write what really happened to this file at the end", {}},
      {"--adversary", "SEALANE_EMU_ADVERSARY", "ACTION@N[:to_host], see docs/emulator.md", {}},
      {"--rotate", "SEALANE_EMU_ROTATE", "new keys after so many bytes", {}},
      {"--contexts", "SEALANE_EMU_CONTEXTS", "contexts there is room for in CC mode (18)", {}},
      {"--reach", "SEALANE_EMU_REACH", "libcrypto by helper, deepbind, dlsym or linked", {}},
      {"--staged", "SEALANE_EMU_STAGED", "stage host bytes before sealing: on or off", {}},
      {"--aad", "SEALANE_EMU_AAD", "additional data in messages: on or off", {}},
      {"--updates", "SEALANE_EMU_UPDATES", "EVP updates per message (1)", {}},
      {"--fresh-contexts", "SEALANE_EMU_FRESH_CONTEXTS", "an EVP context per message", {}},
      {"--seal-thread", "SEALANE_EMU_SEAL_THREAD", "seal on a thread of the driver", {}},
      {"--chatter", "SEALANE_EMU_CHATTER", "a driver's message before every Nth (0: none)", {}},
      {"--queues", "SEALANE_EMU_QUEUES", "hardware queues of a context (8)", {}},
      {"--memops", "SEALANE_EMU_MEMOPS", "stream memory operations: on or off", {}},
      {"--message", "SEALANE_EMU_MESSAGE", "largest message on the bus (1M)", {}},
      {"--slots", "SEALANE_EMU_SLOTS", "messages in flight (4)", {}},
  };

  // Of the runtime.
  std::vector<Switch> runtime = {
      {"--verify", "SEALANE_VERIFY", "compare so many answers with libcrypto's", {}},
      {"--workers", "SEALANE_WORKERS", "threads that seal and open (from the cores)", {}},
      {"--staging-mb", "SEALANE_STAGING_MB", "memory for pageable sources on their way (256)", {}},
      {"--stripes", "SEALANE_STRIPES", "contexts a large copy may travel over (1)", {}},
      {"--metrics-seconds", "SEALANE_METRICS_SECONDS", "between two files of --metrics (5)", {}},
      {"--slot-mb", "SEALANE_SLOT_MB", "locked memory for what is sealed ahead (256)", {}},
  };

  bool watches() const {
    return observe || !stats.empty() || !metrics.empty() || !trace.empty() || !record.empty();
  }
  bool preloads() const { return !emulate || !enable.empty() || !policy.empty() || watches(); }
  const std::string& value_of(std::string_view variable) const;
  void set(std::string_view variable, std::string value);  // of one of the switches
};

void add_emulator_options(CLI::App& command, RunOptions& options);

using Environment = std::vector<std::pair<std::string, std::string>>;
Result<Environment> environment_for(const RunOptions& options);

// "build/examples" or "/usr/lib/sealane/examples": what lies beside this program. `places` are
// below its prefix.
Result<std::string> directory_of(const char* what, const char* file,
                                 std::initializer_list<const char*> places);

}  // namespace sealane::cli
