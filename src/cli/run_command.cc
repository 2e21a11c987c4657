// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane run: a program under the transparent runtime, on this machine's GPU or (--emulate) on the
// emulated one. sealane record: the same with every part off, written down as a trace. Both set the
// environment and become the program, so its exit code and its signals are its own.

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/output_name.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/program_file.h"
#include "cli/run_environment.h"
#include "report/output.h"
#include "report/terminal.h"

namespace sealane::cli {
namespace {

struct Start {
  RunOptions options;
  std::string print_env;  // a form; empty: the program is run
  std::vector<std::string> command;
};

std::string shell_lines(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    text += value.empty() ? fmt::format("unset {}\n", name)
                          : fmt::format("export {}={}\n", name, shell_quoted(value));
  }
  return text;
}

// NAME=VALUE, for `docker run --env-file`, which takes every character as it is, and systemd's
// EnvironmentFile=, which does so only where none has a meaning. What nothing sets needs no line:
// whoever reads the file starts without our environment.
Result<std::string> env_file(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    if (value.empty()) continue;
    if (value.find_first_of("\\\"'\n\r") != std::string::npos || value.front() == ' ' ||
        value.back() == ' ') {
      return usage_error(
          fmt::format("{} has quotes, backslashes or line ends in its value, which readers of env "
                      "files take differently: {}",
                      name, value));
    }
    text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

Status print(const std::string& form, const Environment& environment) {
  if (form == "shell") return report::write_file("-", shell_lines(environment));
  const auto text = env_file(environment);
  return text ? report::write_file("-", *text) : text.error();
}

// A file of an earlier run must not be taken for this one's; nothing else is taken away.
Status clear_outputs(const Start& start, const std::string& program) {
  const RunOptions& options = start.options;
  std::error_code failed;
  const bool in_directory = std::filesystem::is_directory(options.metrics, failed);
  // In a directory each process has a file of its own.
  const std::string metrics = options.metrics + (in_directory ? "/sealane-%p.prom" : "");
  std::vector<report::NamedFile> named = {{"--truth", options.truth}};
  if (!options.disabled) {
    named.insert(named.end(), {{"--stats", options.stats},
                               {"--metrics", options.metrics.empty() ? "" : metrics},
                               {"--trace", options.trace},
                               {"--output", options.record}});
  }
  std::vector<report::NamedFile> outputs;
  for (const auto& [flag, path] : named) {
    outputs.push_back({flag, path.empty() ? "" : output_path(path)});
  }
  SEALANE_TRY(report::check_outputs(outputs, files_read_by(options, program, start.command)));
  for (const report::NamedFile& one : named) {
    if (!one.path.empty() && one.path.find("%p") == std::string::npos) remove_output(one.path);
  }
  return {};
}

Status become(std::vector<std::string> command, const Environment& environment) {
  enter(environment);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  execvp(words[0], words.data());
  return io_error(fmt::format("cannot run {}", command[0]), errno);
}

// Who takes Sealane out of a program still wants the program; but files of an earlier run stay.
void warn_disabled(const RunOptions& options) {
  if (!options.disabled || !options.watches()) return;
  report::say(
      "sealane: warning: SEALANE_DISABLE is set: nothing is watched, and no file is written or "
      "taken away\n");
}

// A page about nothing helps nobody.
void warn_without_driver(const RunOptions& options) {
  if (options.emulate || options.disabled || !options.watches()) return;
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(driver);
    return;
  }
  report::say(
      "sealane: warning: no GPU driver (libcuda.so.1) here: there will be nothing to watch; "
      "--emulate brings a GPU\n");
}

// Better than a run that looks as if the runtime did nothing for it.
void warn_without_runtime(const RunOptions& options, const std::string& program) {
  if (!options.preloads() && !options.emulate) return;
  const std::string why = why_not_preloadable(program);
  if (why.empty()) return;
  report::say(fmt::format("sealane: warning: {} runs WITHOUT {}: {}\n", visible(program),
                          options.preloads() ? "the runtime" : "the emulated GPU", why));
}

Status run(Start& start) {
  RunOptions& options = start.options;
  SEALANE_TRY(take_from_environment(options));
  SEALANE_TRY(check(options));
  SEALANE_LET(const auto environment, environment_for(options));
  if (!start.print_env.empty()) return print(start.print_env, environment);
  if (start.command.empty()) {
    return usage_error(fmt::format("a program is needed: sealane {} -- PROGRAM [ARGUMENT...]",
                                   options.record.empty() ? "run [--emulate]" : "record -o FILE"));
  }
  SEALANE_TRY(check_kernels(options));
  SEALANE_LET(const auto program, find_program(start.command[0]));
  SEALANE_TRY(check_interpreters(program));  // before anything is taken away
  SEALANE_TRY(clear_outputs(start, program));
  warn_disabled(options);
  warn_without_driver(options);
  warn_without_runtime(options, program);
  if (options.emulate) {
    const bool cc = options.value_of("SEALANE_EMU_CC") != "off";
    report::say(fmt::format(
        "sealane: EMULATED GPU, confidential mode {}: protects nothing, for tests only\n",
        cc ? "on" : "off"));
  }
  return become(start.command, environment);
}

void add_start(const Command& command, const std::shared_ptr<Start>& start) {
  command.flag("--print-env", start->print_env, "shell", "shell|file",
               "Print the environment instead: as shell lines, or with =file as a file for "
               "docker --env-file and systemd EnvironmentFile");
  add_emulator_options(command, start->options);
  command.value(kProgramOption, start->command, "PROGRAM",
                "The program and its arguments, after --");
  command.job([start] { return run(*start); });
}

}  // namespace

void add_run(const Command& root) {
  auto start = std::make_shared<Start>();
  const Command command = root.command("run", "Run a CUDA program under the transparent runtime");
  add_runtime_options(command, start->options);
  add_start(command, start);
  command.footer(
      "Examples:\n"
      "  sealane run --observe -- python3 serve.py   change nothing, say what was found\n"
      "  sealane run -- python3 serve.py             with all that is on by default\n"
      "  sealane run --enable engine --verify 1000 -- ./program\n"
      "  sealane run --emulate --cc on -- ./program  without a GPU, CC mode as shipped\n"
      "  sealane run --emulate --policy parallel --stats s.json -- ./program\n"
      "  sealane run --print-env=file > sealane.env  for containers and service files\n"
      "\n"
      "The exit status is the program's; 1 if it cannot be started, 2 for wrong usage.\n"
      "docs/runtime.md, docs/watching.md, docs/emulator.md.");
}

void add_record(const Command& root) {
  auto start = std::make_shared<Start>();
  const Command command = root.command("record", "Record a CUDA program's copies and launches");
  command
      .output("-o,--output", start->options.record,
              "The trace to write (docs/trace-format.md); %p is the process's number",
              &check_program_output_name)
      .required();
  add_start(command, start);
  command.footer(
      "Examples:\n"
      "  sealane record -o program.trace -- ./program\n"
      "  sealane record -o program.trace --emulate --cc off -- ./program\n"
      "  sealane estimate program.trace                what it would cost in CC mode\n"
      "\n"
      "The exit status is the program's; 1 if it cannot be started, 2 for wrong usage.");
}

}  // namespace sealane::cli
