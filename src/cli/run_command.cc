// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane run: a program under the transparent runtime, on this machine's GPU or (--emulate) on the
// emulated one. sealane record: the same with every part off, written down as a trace. Both set the
// environment and become the program, so its exit code and its signals are its own.

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/run_environment.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

struct Start {
  RunOptions options;
  bool print_env = false;
  std::vector<std::string> command;
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void print(const Environment& environment) {
  for (const auto& [name, value] : environment) fmt::print("export {}={}\n", name, quoted(value));
}

// A file of an earlier run must not be taken for this one's.
Status clear_outputs(const RunOptions& options) {
  for (const std::string& path : {options.stats, options.metrics, options.trace, options.record}) {
    if (path.empty() || path.find("%p") != std::string::npos) continue;
    if (path == options.metrics && std::filesystem::is_directory(path)) {
      if (Status status = report::check_writable(path + "/sealane.prom"); !status) return status;
      continue;  // each process has a file of its own there
    }
    if (Status status = report::check_writable(path); !status) return status;
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  return {};
}

Status become(std::vector<std::string> command, const Environment& environment) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  execvp(words[0], words.data());
  return io_error(fmt::format("cannot run {}", command[0]), errno);
}

Status run(const Start& start) {
  const RunOptions& options = start.options;
  if (options.observe && !options.enable.empty()) {
    return usage_error("--observe changes nothing: it cannot be combined with --enable");
  }
  if (!options.policy.empty() && (options.observe || !options.enable.empty())) {
    return usage_error("--policy is a set of switches: it cannot be combined with --enable");
  }
  const auto environment = environment_for(options);
  if (!environment) return environment.error();
  if (start.print_env) {
    print(*environment);
    return {};
  }
  if (start.command.empty()) {
    return usage_error("a program is needed: sealane run [--emulate] -- PROGRAM [ARGUMENT...]");
  }
  if (Status status = clear_outputs(options); !status) return status;
  if (options.emulate) {
    const bool cc = options.value_of("SEALANE_EMU_CC") != "off";
    fmt::print(
        stderr,
        "sealane: EMULATED GPU, confidential mode {}. It protects nothing: for tests only.\n",
        cc ? "on" : "off");
  }
  return become(start.command, *environment);
}

void add_start(CLI::App& command, const std::shared_ptr<Start>& start, Invocation& invocation) {
  add_emulator_options(command, start->options);
  command.add_flag("--print-env", start->print_env,
                   "Print the environment instead, for containers and service files");
  command.add_option("command", start->command, "The program and its arguments, after --");
  command.callback([start, &invocation] { invocation.job = [start] { return run(*start); }; });
}

}  // namespace

void add_run(CLI::App& root, Invocation& invocation) {
  auto start = std::make_shared<Start>();
  RunOptions& options = start->options;
  CLI::App* command =
      root.add_subcommand("run", "Run a CUDA program under the transparent runtime");
  command->add_flag("--observe", options.observe,
                    "Change nothing: check what Sealane assumes and say what it would save");
  command->add_option(
      "--enable", options.enable,
      "engine,async,parallel,coalesce,register; speculate, pinned, defer; default (the first "
      "five, and speculate where it pays), which is the default; none (the default with "
      "--emulate)");
  command
      ->add_option("--policy", options.policy,
                   "A set of switches by its name, to compare: stock, parallel, pipellm, sealane")
      ->check(CLI::IsMember({"stock", "parallel", "pipellm", "sealane"}));
  for (Switch& one : options.runtime) command->add_option(one.flag, one.value, one.help);
  command->add_option("--stats", options.stats,
                      "Write counters as JSON to this file and a summary to stderr at the end");
  command->add_option("--metrics", options.metrics,
                      "Keep a Prometheus text file up to date, for a node exporter (a directory: a "
                      "file per process)");
  command->add_option("--trace", options.trace, "Write a Chrome trace, for ui.perfetto.dev");
  add_start(*command, start, invocation);
}

void add_record(CLI::App& root, Invocation& invocation) {
  auto start = std::make_shared<Start>();
  CLI::App* command = root.add_subcommand("record", "Record a CUDA program's copies and launches");
  command
      ->add_option("-o,--output", start->options.record,
                   "The trace to write (docs/trace-format.md); %p is the process's number")
      ->required();
  add_start(*command, start, invocation);
}

}  // namespace sealane::cli
