// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a program the way a user would and keeps what it said. No shell in between, so arguments
// arrive as they are. May be called from any number of threads.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace sealane::test {

struct ProgramOptions {
  std::vector<std::string> environment;  // "NAME=value", on top of ours; of its SEALANE_* only _CPU
  std::string input;                     // what the program reads from stdin
  std::chrono::milliseconds limit = std::chrono::minutes(9);  // then it is killed: it hangs
};

struct ProgramResult {
  int exit_code = -1;  // -1: it did not exit by itself (see signal)
  int signal = 0;      // what ended it; SIGKILL if it took too long
  bool timed_out = false;
  std::string out;
  std::string err;
};

// argv[0] is looked up in PATH unless it has a slash. Throws std::system_error if the program
// cannot be started at all.
ProgramResult run_program(const std::vector<std::string>& argv, const ProgramOptions& options = {});

}  // namespace sealane::test
