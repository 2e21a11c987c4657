// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand plugs in: one file per subcommand, one add_* function each. It declares its
// options on `root` and, if it is the one the user typed, leaves its job in `invocation`. The job
// runs after all parsing succeeded. Results go to stdout, progress to stderr.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace sealane::cli {

// The positional of `run` and `record`: a program with arguments of its own.
constexpr const char* kProgramOption = "command";

struct Invocation {
  // A usage error exits with 2, any other error with 1; its message becomes one line on stderr.
  std::function<Status()> job;
};

// An option with a value, called `takes` in the help.
template <typename Value>
CLI::Option* add_value(CLI::App& command, const std::string& flag, Value& to,
                       const std::string& takes, const std::string& help) {
  return command.add_option(flag, to, help)->type_name(takes);
}

// `job` runs with the flags as they were given.
template <typename Flags, typename Job>
void run_with(CLI::App& command, Invocation& invocation, const std::shared_ptr<Flags>& flags,
              Job* job) {
  command.callback(
      [flags, job, &invocation] { invocation.job = [flags, job] { return job(*flags); }; });
}

void add_doctor(CLI::App& root, Invocation& invocation);
void add_bench(CLI::App& root, Invocation& invocation);
void add_sim(CLI::App& root, Invocation& invocation);
void add_estimate(CLI::App& root, Invocation& invocation);
void add_validate(CLI::App& root, Invocation& invocation);
void add_report(CLI::App& root, Invocation& invocation);
void add_run(CLI::App& root, Invocation& invocation);
void add_record(CLI::App& root, Invocation& invocation);
void add_attach(CLI::App& root, Invocation& invocation);
void add_keygen(CLI::App& root, Invocation& invocation);
void add_env(CLI::App& root, Invocation& invocation);
void add_help(CLI::App& root, Invocation& invocation);

}  // namespace sealane::cli
