// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand plugs in: one file per subcommand, one add_* function each. It declares its
// options on a Command below `root` and leaves its job there, which runs if the user typed that
// command and all parsing succeeded. Results go to stdout, progress to stderr.
//
// Who parses is CLI11, which is large: only what is said here needs it, and the files that show
// commands (manual.h).
//
// And what flags have in common, in every command the same: values, files that are written, checks,
// things chosen by their names.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sealane::cli {

// The positional of `run` and `record`: a program with arguments of its own.
constexpr const char* kProgramOption = "command";

struct Invocation {
  // A usage error exits with 2, any other error with 1; its message becomes one line on stderr.
  std::function<Status()> job;
};

// Says what is wrong with a value, or nothing. What is no number, NaN and infinity among them, is
// refused. Standard output of a program that is started is its own: "-" is no name there.
using FlagCheck = std::function<std::string(const std::string&)>;
FlagCheck whole_number(uint64_t least, uint64_t most);
FlagCheck real_number(double least, double most);
FlagCheck one_of(std::vector<std::string> words);
std::string check_output_name(const std::string& path);
std::string check_program_output_name(const std::string& path);

// One that was declared: how it goes together with others, and, later, whether it was given.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  const Option& required() const;
  // Others of the same command, declared before.
  const Option& needs(const std::string& flag) const;
  const Option& excludes(const std::vector<std::string>& flags) const;

  bool given() const;
  std::string text() const;  // its first value, as it was typed

 private:
  CLI::Option* option_;
};

// A command, while it is declared. Of an option, `takes` is what --help calls its value, and `flag`
// without dashes is a positional.
class Command {
 public:
  Command(CLI::App& app, Invocation& invocation) : app_(&app), invocation_(&invocation) {}

  Command command(const std::string& name, const std::string& what) const;  // one below it
  Command group(const std::string& name, const std::string& what) const;    // of commands
  void job(std::function<Status()> job) const;
  void footer(const std::string& text) const;      // below the options of --help
  Command titled(const std::string& title) const;  // the same one: its further options in --help

  // Text, a number, or a list of them: with a comma in `takes` in one word, else one each time.
  template <typename Value>
  Option value(const std::string& flag, Value& to, const std::string& takes,
               const std::string& help, const FlagCheck& check = {}) const;
  // One of these words, "none|model": set by its place among them.
  Option word(const std::string& flag, const std::string& words, const std::string& help,
              const std::function<void(size_t)>& set) const;
  // An amount of memory: 4096, 64K.
  Option bytes(const std::string& flag, uint64_t& to, uint64_t most, const std::string& takes,
               const std::string& help) const;
  Option flag(const std::string& flag, bool& to, const std::string& help) const;
  // One that may have a word, --flag=WORD, and has `usual` without.
  Option flag(const std::string& flag, std::string& to, const std::string& usual,
              const std::string& words, const std::string& help) const;

  // A file to write: an empty name, which would silently write nothing, is refused. Whether it can
  // be written, and is not one that is read, says report::check_outputs().
  Option output(const std::string& flag, std::string& path, const std::string& help,
                const FlagCheck& check = &check_output_name) const;
  // --json of whatever measures.
  void json(std::string& path) const;
  // --draws: none, or as many as an interval needs.
  void draws(uint32_t& to) const;

 private:
  Option declared(CLI::Option& option) const;

  CLI::App* app_;
  Invocation* invocation_;
  std::string title_{};
};

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
struct Declared {
  Command command;
  Flags& flags;
};

// `job` runs with the flags as they were given.
template <typename Flags, typename Job>
Declared<Flags> add_command(const Command& parent, const std::string& name, const std::string& what,
                            Job* job) {
  const auto flags = std::make_shared<Flags>();
  const Command command = parent.command(name, what);
  command.job([flags, job] { return job(*flags); });
  return {command, *flags};
}

// One warning line for every SEALANE_* variable that nothing reads: most likely a typing error.
std::vector<std::string> unknown_environment();

void add_doctor(const Command& root);
void add_bench(const Command& root);
void add_sim(const Command& root);
void add_estimate(const Command& root);
void add_validate(const Command& root);
void add_report(const Command& root);
void add_run(const Command& root);
void add_record(const Command& root);
void add_trial(const Command& root);
void add_attach(const Command& root);
void add_keygen(const Command& root);
void add_env(const Command& root);
void add_help(const Command& root, const CLI::App& all);

// Below `bench`.
void add_bench_seal(const Command& bench);
void add_bench_copy(const Command& bench);
void add_bench_engines(const Command& bench);
void add_bench_ptx(const Command& bench);
void add_bench_nccl(const Command& bench);
void add_bench_collective(const Command& bench, const std::string& op, const std::string& what);

}  // namespace sealane::cli
