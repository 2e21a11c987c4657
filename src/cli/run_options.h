// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The flags of `sealane run` and `record`, and which of them go together. A flag that would do
// nothing is refused: whoever wrote it expects something.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace sealane::cli {

// A flag whose value goes to the emulated driver, or to the preload, as it is, by the variable of
// its name: SEALANE_EMU_FRESH_CONTEXTS of --fresh-contexts. It is checked here all the same: a
// program that never calls the driver would not hear that its GPU is not the one asked for, and
// the preload must not keep a program from running.
struct Switch {
  std::string flag;
  std::string variable;
  std::string takes;  // "on|off": what --help calls its value
  std::string help;
  uint64_t least = 0;  // of a number
  uint64_t most = 0;
  std::string value{};
  bool inherited = false;  // the value is the variable's, not the flag's
};
Switch emulated(const char* flag, const char* takes, const char* help, uint64_t least = 0,
                uint64_t most = 0);
Switch runtime_number(const char* flag, const char* help, uint64_t least, uint64_t most);

struct RunOptions {
  bool emulate = false;
  bool observe = false;
  bool quiet = false;     // without the line that says what is active
  bool disabled = false;  // SEALANE_DISABLE: the runtime does nothing, and writes nothing
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
      emulated("--cc", "on|off", "Confidential mode [on]"),
      emulated("--gpus", "N", "How many emulated GPUs [1]", 0, 16),
      emulated("--memory", "BYTES", "Of each, as 512M or 4G [half of RAM]", 1 << 20, 1ull << 42),
      emulated("--dilation", "K", "A modelled second takes K real ones [auto]"),
      emulated("--adversary", "ACTION@N", "Attack one message: docs/emulator.md"),
      emulated("--rotate", "BYTES", "New keys after so many [373 GB]", 1, 1ull << 50),
      emulated("--contexts", "N", "Room for so many in CC mode [18]", 1, 1024),
      emulated("--compute-capability", "X.Y", "Of the GPU; PTX for a newer one is refused [9.0]"),
      emulated("--check", "memory,races", "Say what device code does wrong with memory"),
      emulated("--machine-code", "refuse|skip",
               "Kernels that come without PTX fail, or do nothing"),
  };

  // What nobody has confirmed about the real driver.
  std::vector<Switch> unconfirmed = {
      emulated("--reach", "HOW", "At libcrypto: helper, deepbind, dlsym, linked, own (not at all)"),
      emulated("--staged", "on|off", "Host bytes are staged before sealing"),
      emulated("--aad", "on|off", "Messages have additional data"),
      emulated("--updates", "N", "EVP updates per message [1]", 1, 64),
      emulated("--fresh-contexts", "on|off", "An EVP context per message"),
      emulated("--seal-thread", "on|off", "A thread of the driver seals"),
      emulated("--wipes", "on|off", "What it opened of a forged message [on]"),
      emulated("--chatter", "N", "A message of its own before every Nth [0]", 0, 1000000),
      emulated("--queues", "N", "Hardware queues of a context [8]", 1, 32),
      emulated("--memops", "on|off", "Stream memory operations [on]"),
      emulated("--pageable", "blocking|async", "How sources are taken"),
      emulated("--mapped", "copied|live", "How kernels see pinned memory"),
      emulated("--message", "BYTES", "Largest message on the bus [1M]", 64, 64 << 20),
      emulated("--slots", "N", "Messages in flight [4]", 1, 64),
  };

  // Of the runtime.
  Switch metrics_seconds =
      runtime_number("--metrics-seconds", "Between two files of --metrics [5]", 1, 86400);
  std::vector<Switch> runtime = {
      runtime_number("--workers", "Threads that seal and open [from the cores]", 1, 1024),
      runtime_number("--verify", "Compare so many answers with libcrypto's [0]", 0, ~0ull),
      runtime_number("--staging-mb", "Memory for pageable sources [256]", 1, 1 << 20),
      runtime_number("--slot-mb", "Locked memory for what is sealed ahead [256]", 0, 1 << 20),
  };

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

// By these each program that is run writes a file.
struct OutputVariable {
  const char* name;
  std::string RunOptions::*file;
  bool of_emulator = false;
};
inline constexpr std::array<OutputVariable, 5> kOutputVariables = {{
    {"SEALANE_STATS", &RunOptions::stats},
    {"SEALANE_METRICS", &RunOptions::metrics},
    {"SEALANE_TRACE", &RunOptions::trace},
    {"SEALANE_RECORD", &RunOptions::record},
    {"SEALANE_EMU_STATS", &RunOptions::truth, true},
}};

// What no flag says, SEALANE_* of this process says: flag over environment. Afterwards the options
// are what holds, whoever said it; a variable is refused where its flag would be.
Status take_from_environment(RunOptions& options);

void add_runtime_options(const Command& command, RunOptions& options);
void add_emulator_options(const Command& command, RunOptions& options);

// A flag that would do nothing, or a word that nobody knows, is a usage error.
Status check(const RunOptions& options);
Status check_kernels(const RunOptions& options);  // before a program is run with them

}  // namespace sealane::cli
