// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand plugs in: one file per subcommand, one add_* function each. It declares its
// options on `root` and, if it is the one the user typed, leaves its job in `invocation`. The job
// runs after all parsing succeeded. Results go to stdout, progress to stderr.
//
// And what flags have in common, in every command the same: values, files that are written, checks,
// things chosen by their names.
#pragma once

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// A file to write: an empty name, which would silently write nothing, is refused. Whether it can be
// written, and is not one that is read, says report::check_outputs().
CLI::Option* add_output(CLI::App& command, const std::string& flag, std::string& path,
                        const std::string& help);
// --json of whatever measures.
CLI::Option* add_json(CLI::App& command, std::string& path);
// --draws: none, or as many as an interval needs.
void add_draws(CLI::App& command, uint32_t& to);

// For CLI11's check(): says what is wrong, or nothing. What is no number, NaN and infinity among
// them, is refused. Standard output of a program that is started is its own: "-" is no name there.
using FlagCheck = std::function<std::string(const std::string&)>;
FlagCheck whole_number(uint64_t least, uint64_t most);
FlagCheck real_number(double least, double most);
FlagCheck one_of(std::vector<std::string> words);
std::string check_output_name(const std::string& path);
std::string check_program_output_name(const std::string& path);

// Number of letters to insert, delete, replace or swap with a neighbour to get from one to the
// other.
size_t edit_distance(std::string_view from, std::string_view to);
// "; did you mean 'doctor'?" or, if nothing is near, "; there are: a, b, c".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// "--model: unknown model 'optt-30b'; did you mean 'opt-30b'?"
Error unknown(const std::string& what, const std::string& name,
              const std::vector<std::string>& names);

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.emplace_back(each.name);
  return names;
}

// Those of `all` that were asked for by name, in their own order; all if none was.
template <typename Thing>
Result<std::vector<const Thing*>> choose(const std::vector<Thing>& all,
                                         const std::vector<std::string>& names, const char* what) {
  const std::vector<std::string> known = names_of(all);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return usage_error(fmt::format("there is no {} '{}'{}", what, name, did_you_mean(name, known)));
  }
  std::vector<const Thing*> out;
  for (const Thing& one : all) {
    const bool wanted =
        names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    if (wanted) out.push_back(&one);
  }
  return out;
}

// A command and what its options are read into.
template <typename Flags>
struct Command {
  CLI::App& app;
  Flags& flags;
};

// `job` runs with the flags as they were given.
template <typename Flags, typename Job>
Command<Flags> add_command(CLI::App& parent, Invocation& invocation, const std::string& name,
                           const std::string& what, Job* job) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand(name, what);
  app->callback(
      [flags, job, &invocation] { invocation.job = [flags, job] { return job(*flags); }; });
  return {*app, *flags};
}

// One warning line for every SEALANE_* variable that nothing reads: most likely a typing error.
std::vector<std::string> unknown_environment();

void add_doctor(CLI::App& root, Invocation& invocation);
void add_bench(CLI::App& root, Invocation& invocation);
void add_sim(CLI::App& root, Invocation& invocation);
void add_estimate(CLI::App& root, Invocation& invocation);
void add_validate(CLI::App& root, Invocation& invocation);
void add_report(CLI::App& root, Invocation& invocation);
void add_run(CLI::App& root, Invocation& invocation);
void add_record(CLI::App& root, Invocation& invocation);
void add_trial(CLI::App& root, Invocation& invocation);
void add_attach(CLI::App& root, Invocation& invocation);
void add_keygen(CLI::App& root, Invocation& invocation);
void add_env(CLI::App& root, Invocation& invocation);
void add_help(CLI::App& root, Invocation& invocation);

// Below `bench`.
void add_bench_seal(CLI::App& bench, Invocation& invocation);
void add_bench_copy(CLI::App& bench, Invocation& invocation);
void add_bench_engines(CLI::App& bench, Invocation& invocation);
void add_bench_ptx(CLI::App& bench, Invocation& invocation);
void add_bench_nccl(CLI::App& bench, Invocation& invocation);
void add_bench_collective(CLI::App& bench, Invocation& invocation, const std::string& op,
                          const std::string& what);

}  // namespace sealane::cli
