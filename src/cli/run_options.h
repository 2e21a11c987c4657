// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The flags of `sealane run` and `record`, and which of them go together. A flag that would do
// nothing is refused: whoever wrote it expects something.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sealane::cli {

// A flag whose value goes to the emulated driver as it is. It is checked here all the same: a
// program that never calls the driver would not hear that its GPU is not the one asked for.
struct Switch {
  const char* flag;
  const char* variable;
  const char* takes;  // "on|off": what --help calls its value
  const char* help;
  std::string value;
  uint64_t least = 0;  // of a number
  uint64_t most = 0;
};

// A number for the preload, which must not keep a program from running: checked here.
struct NumberSwitch {
  const char* flag;
  const char* variable;
  const char* help;
  uint64_t least;
  uint64_t most;
  std::string value;
};

struct RunOptions {
  bool emulate = false;
  bool observe = false;
  bool quiet = false;  // without the line that says what is active
  std::string platform;
  std::string pacing;
  std::string enable;  // empty: what is on by default, or nothing on the emulated GPU
  std::string policy;  // instead: a set of switches that has a name
  std::string stats;   // files; empty: none
  std::string metrics;
  std::string trace;
  std::string record;
  std::string truth;    // of the emulated GPU
  std::string kernels;  // files, colon-separated
  std::vector<Switch> switches = {
      {"--cc", "SEALANE_EMU_CC", "on|off", "Confidential mode [on]", {}},
      {"--gpus", "SEALANE_EMU_GPUS", "N", "How many emulated GPUs [1]", {}, 0, 16},
      {"--memory",
       "SEALANE_EMU_MEMORY",
       "BYTES",
       "Of each, as 512M or 4G [half of RAM]",
       {},
       1 << 20,
       1ull << 42},
      {"--dilation", "SEALANE_EMU_DILATION", "K", "A modelled second takes K real ones [auto]", {}},
      {"--adversary",
       "SEALANE_EMU_ADVERSARY",
       "ACTION@N",
       "Attack one message: docs/emulator.md",
       {}},
      {"--rotate",
       "SEALANE_EMU_ROTATE",
       "BYTES",
       "New keys after so many [373 GB]",
       {},
       1,
       1ull << 50},
      {"--contexts", "SEALANE_EMU_CONTEXTS", "N", "Room for so many in CC mode [18]", {}, 1, 1024},
      {"--compute-capability",
       "SEALANE_EMU_COMPUTE_CAPABILITY",
       "X.Y",
       "Of the GPU; PTX for a newer one is refused [9.0]",
       {}},
      {"--check",
       "SEALANE_EMU_CHECK",
       "memory,races",
       "Say what device code does wrong with memory",
       {}},
      {"--machine-code",
       "SEALANE_EMU_MACHINE_CODE",
       "refuse|skip",
       "Kernels that come without PTX fail, or do nothing",
       {}},
  };

  // What nobody has confirmed about the real driver.
  std::vector<Switch> unconfirmed = {
      {"--reach",
       "SEALANE_EMU_REACH",
       "HOW",
       "At libcrypto: helper, deepbind, dlsym, linked, own (not at all)",
       {}},
      {"--staged", "SEALANE_EMU_STAGED", "on|off", "Host bytes are staged before sealing", {}},
      {"--aad", "SEALANE_EMU_AAD", "on|off", "Messages have additional data", {}},
      {"--updates", "SEALANE_EMU_UPDATES", "N", "EVP updates per message [1]", {}, 1, 64},
      {"--fresh-contexts",
       "SEALANE_EMU_FRESH_CONTEXTS",
       "on|off",
       "An EVP context per message",
       {}},
      {"--seal-thread", "SEALANE_EMU_SEAL_THREAD", "on|off", "A thread of the driver seals", {}},
      {"--chatter",
       "SEALANE_EMU_CHATTER",
       "N",
       "A message of its own before every Nth [0]",
       {},
       0,
       1000000},
      {"--queues", "SEALANE_EMU_QUEUES", "N", "Hardware queues of a context [8]", {}, 1, 32},
      {"--memops", "SEALANE_EMU_MEMOPS", "on|off", "Stream memory operations [on]", {}},
      {"--pageable", "SEALANE_EMU_PAGEABLE", "blocking|async", "How sources are taken", {}},
      {"--mapped", "SEALANE_EMU_MAPPED", "copied|live", "How kernels see pinned memory", {}},
      {"--message",
       "SEALANE_EMU_MESSAGE",
       "BYTES",
       "Largest message on the bus [1M]",
       {},
       64,
       64 << 20},
      {"--slots", "SEALANE_EMU_SLOTS", "N", "Messages in flight [4]", {}, 1, 64},
  };

  // Of the runtime.
  NumberSwitch metrics_seconds = {"--metrics-seconds",
                                  "SEALANE_METRICS_SECONDS",
                                  "Between two files of --metrics [5]",
                                  1,
                                  86400,
                                  {}};
  std::vector<NumberSwitch> runtime = {
      {"--workers", "SEALANE_WORKERS", "Threads that seal and open [from the cores]", 1, 1024, {}},
      {"--verify", "SEALANE_VERIFY", "Compare so many answers with libcrypto's [0]", 0, ~0ull, {}},
      {"--staging-mb", "SEALANE_STAGING_MB", "Memory for pageable sources [256]", 1, kMbMax, {}},
      {"--slot-mb",
       "SEALANE_SLOT_MB",
       "Locked memory for what is sealed ahead [256]",
       0,
       kMbMax,
       {}},
  };
  static constexpr uint64_t kMbMax = 1 << 20;

  bool watches() const {
    return observe || !stats.empty() || !metrics.empty() || !trace.empty() || !record.empty();
  }
  bool preloads() const { return !emulate || !enable.empty() || !policy.empty() || watches(); }
  // Is a part of the runtime switched on, or may be?
  bool serves() const {
    return !observe && record.empty() && (!emulate || !enable.empty() || !policy.empty());
  }
  const std::string& value_of(std::string_view variable) const;
  void set(std::string_view variable, std::string value);  // of one of the switches
};

// What no flag says, SEALANE_* of this process says: flag over environment.
void take_from_environment(RunOptions& options);

void add_runtime_options(CLI::App& command, RunOptions& options);
void add_emulator_options(CLI::App& command, RunOptions& options);

// A flag that would do nothing, or a word that nobody knows, is a usage error.
Status check(const RunOptions& options);

}  // namespace sealane::cli
