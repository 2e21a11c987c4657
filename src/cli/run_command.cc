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
#include <sstream>
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

Status print(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    text += value.empty() ? fmt::format("unset {}\n", name)
                          : fmt::format("export {}={}\n", name, quoted(value));
  }
  return report::write_file("-", text);
}

// Where execvp would find it: asked before anything of an earlier run is taken away.
Status check_program(const std::string& program) {
  const auto runs = [](const std::string& path) {
    std::error_code ignored;
    return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
  };
  if (program.find('/') != std::string::npos) {
    if (runs(program)) return {};
    if (access(program.c_str(), X_OK) != 0) return io_error("cannot run " + program, errno);
    return io_error(fmt::format("cannot run {}: it is a directory", program));
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (runs((directory.empty() ? "." : directory) + "/" + program)) return {};
  }
  return io_error(fmt::format("cannot run {}: it is not in PATH", program));
}

// A file of an earlier run must not be taken for this one's.
Status clear_outputs(const RunOptions& options) {
  for (const std::string& path :
       {options.stats, options.metrics, options.trace, options.record, options.truth}) {
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
  enter(environment);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  execvp(words[0], words.data());
  return io_error(fmt::format("cannot run {}", command[0]), errno);
}

// A page about nothing helps nobody.
void warn_without_driver(const RunOptions& options) {
  if (options.emulate || !options.watches()) return;
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(driver);
    return;
  }
  fmt::print(stderr,
             "sealane: warning: no GPU driver (libcuda.so.1) here: there will be nothing to watch; "
             "--emulate brings a GPU\n");
}

Status run(const Start& start) {
  const RunOptions& options = start.options;
  if (Status status = check(options); !status) return status;
  const auto environment = environment_for(options);
  if (!environment) return environment.error();
  if (start.print_env) return print(*environment);
  if (start.command.empty()) {
    return usage_error(fmt::format("a program is needed: sealane {} -- PROGRAM [ARGUMENT...]",
                                   options.record.empty() ? "run [--emulate]" : "record -o FILE"));
  }
  if (Status status = check_program(start.command[0]); !status) return status;
  if (Status status = clear_outputs(options); !status) return status;
  warn_without_driver(options);
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
  command.add_flag("--print-env", start->print_env,
                   "Print the environment instead, for containers and service files");
  add_emulator_options(command, start->options);
  command.add_option(kProgramOption, start->command, "The program and its arguments, after --")
      ->type_name("PROGRAM");
  command.callback([start, &invocation] { invocation.job = [start] { return run(*start); }; });
}

}  // namespace

void add_run(CLI::App& root, Invocation& invocation) {
  auto start = std::make_shared<Start>();
  CLI::App* command =
      root.add_subcommand("run", "Run a CUDA program under the transparent runtime");
  add_runtime_options(*command, start->options);
  add_start(*command, start, invocation);
  command->footer(
      "Examples:\n"
      "  sealane run --observe -- python3 serve.py   change nothing, say what was found\n"
      "  sealane run -- python3 serve.py             with all that is on by default\n"
      "  sealane run --enable engine --verify 1000 -- ./program\n"
      "  sealane run --emulate --cc on -- ./program  without a GPU, CC mode as shipped\n"
      "  sealane run --emulate --policy parallel --stats s.json -- ./program\n"
      "  sealane run --print-env                     for containers and service files\n"
      "\n"
      "The exit status is the program's; 1 if it cannot be started, 2 for wrong usage.\n"
      "docs/runtime.md, docs/watching.md, docs/emulator.md.");
}

void add_record(CLI::App& root, Invocation& invocation) {
  auto start = std::make_shared<Start>();
  CLI::App* command = root.add_subcommand("record", "Record a CUDA program's copies and launches");
  command
      ->add_option("-o,--output", start->options.record,
                   "The trace to write (docs/trace-format.md); %p is the process's number")
      ->required()
      ->type_name("FILE");
  add_start(*command, start, invocation);
  command->footer(
      "Examples:\n"
      "  sealane record -o program.trace -- ./program\n"
      "  sealane record -o program.trace --emulate --cc off -- ./program\n"
      "  sealane estimate program.trace                what it would cost in CC mode\n"
      "\n"
      "The exit status is the program's; 1 if it cannot be started, 2 for wrong usage.");
}

}  // namespace sealane::cli
