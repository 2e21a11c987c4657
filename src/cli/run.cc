// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/help_format.h"
#include "cli/manual.h"
#include "cli/program.h"
#include "cli/run_environment.h"
#include "report/output.h"
#include "report/terminal.h"
#include "seal/engine.h"
#include "sealane_commit.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  sealane doctor                     what this machine can do\n"
    "  sealane trial -- CMD               try a CUDA program under it, part by part\n"
    "  sealane run --observe -- CMD       what would it do for this CUDA program?\n"
    "  sealane run -- CMD                 a CUDA program under the runtime\n"
    "  sealane run --emulate -- CMD       the same on the emulated confidential GPU\n"
    "  sealane record -o T -- CMD         write down its copies and launches\n"
    "  sealane estimate --list            what CC mode costs: workloads, machines\n"
    "  sealane bench seal --quick         sealing next to memcpy and OpenSSL\n"
    "  sealane bench copy                 what each part of the runtime buys\n"
    "  sealane bench allreduce --ranks 2  a sealed all-reduce next to a plain one\n"
    "  sealane keygen group.key           the key of a training group\n"
    "  sealane sim --seeds 0..100         look for broken promises, from seeds\n"
    "\n"
    "For programs: --json FILE of whatever prints figures (- is stdout), run --stats.\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage; of 'run' the program's own.\n"
    "Environment: SEALANE_AEAD=vaes-512|vaes-256|aes-ni|ipsec-mb|openssl,\n"
    "SEALANE_CPU=-avx512,-vaes, SEALANE_DEBUG=WARN|INFO|TRACE.";

// One line, whatever an argument or a file name may contain.
int fail(int code, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  report::say(fmt::format("sealane: {}\n", visible(message)));
  return code;
}

// A command the user typed and how it was reached: "sealane bench seal".
struct Typed {
  const CLI::App* app;
  std::string path;
};

// Down the commands the user typed, to the last one or the first for which `stop` holds.
template <typename Stop>
Typed walk(const CLI::App& root, Stop stop) {
  Typed typed{&root, root.get_name()};
  while (!stop(*typed.app) && !typed.app->get_subcommands().empty()) {
    typed.app = typed.app->get_subcommands().front();
    typed.path += ' ' + typed.app->get_name();
  }
  return typed;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Words that nobody took, of the innermost command first: what follows "--" goes to the outermost.
// It is a program's and never strange.
std::vector<std::string> strange_words(const CLI::App& root) {
  std::vector<std::string> words;
  for (const CLI::App* app = walk(root, [](const CLI::App&) { return false; }).app; app != nullptr;
       app = app->get_parent()) {
    const std::vector<std::string> own = app->remaining(false);
    words.insert(words.end(), own.begin(), own.end());
  }
  words.erase(std::find(words.begin(), words.end(), "--"), words.end());
  return words;
}

std::string explain_strange(const CLI::App& root, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    const auto [app, path] = walk(root, [&](const CLI::App& one) {
      const std::vector<std::string> own = one.remaining();
      return std::find(own.begin(), own.end(), word) != own.end();
    });
    const CLI::Option* program = app->get_option_no_throw(kProgramOption);
    if (program != nullptr && program->count() > 0) {
      return fmt::format(
          "unknown option '{}' of '{}'; if it is the program's, write -- before the "
          "program",
          name, path);
    }
    return fmt::format("unknown option '{}' of '{}'{}", name, path,
                       did_you_mean(name, option_names(*app)));
  }
  const auto [app, path] = walk(root, [](const CLI::App&) { return false; });
  const std::vector<std::string> commands = command_names(*app);
  if (commands.empty()) {
    return fmt::format("unexpected argument '{}'; see '{} --help'", word, path);
  }
  return fmt::format("unknown command '{}'{}", word, did_you_mean(word, commands));
}

// CLI11's own message names the argument; what helps is the command or flag that was meant.
std::string explain(const CLI::App& root, const CLI::ParseError& error) {
  const std::vector<std::string> strange = strange_words(root);
  if (!strange.empty()) return explain_strange(root, strange.front());
  const auto [app, path] = walk(root, [](const CLI::App&) { return false; });
  const std::vector<std::string> commands = command_names(*app);
  if (commands.empty()) return fmt::format("{}; see '{} --help'", error.what(), path);
  return fmt::format("'{}' needs a command: {}; see '{} --help'", path, fmt::join(commands, ", "),
                     path);
}

// Which sources, and what they can do on this machine: one line, to be put into a report.
std::string version_text() {
  std::vector<std::string> engines;
  for (const Engine* engine : all_engines()) {
    if (engine->available()) engines.emplace_back(engine->name());
  }
  std::vector<std::string> parts;
  for (const auto& [name, file, here, installed] :
       {std::tuple("runtime", "libsealane-preload.so", "lib/sealane", SEALANE_LIBDIR "/sealane"),
        {"emulator", "libcuda.so.1", "lib/emu", SEALANE_LIBDIR "/sealane/emu"},
        {"nccl", "libnccl-net-sealane.so", "lib", SEALANE_LIBDIR}}) {
    if (directory_of("", file, {here, installed})) parts.emplace_back(name);
  }
  return fmt::format(
      "sealane {} (commit {}; engines here: {}; installed: {})", SEALANE_VERSION, SEALANE_COMMIT,
      fmt::join(engines, " "),
      parts.empty() ? "the program alone" : fmt::format("{}", fmt::join(parts, " ")));
}

// A descriptor that is closed would be the number of the next file that is opened, and what is said
// would be written there. Its place is taken by something that refuses, which no program inherits.
void occupy_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    const int mode = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode | O_CLOEXEC) != number) return;
  }
}

// --help and --version, on standard output and not half of it.
int show(const CLI::App& root, const CLI::Success& asked) {
  std::ostringstream text;
  root.exit(asked, text, text);
  const Status shown = report::write_file("-", text.str());
  return shown ? 0 : fail(kExitFailed, shown.error().message);
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App root{"Speed for GPUs in confidential-computing mode"};
  root.name("sealane");
  root.set_version_flag("--version", &version_text);
  root.require_subcommand(1);
  root.formatter(std::make_shared<HelpFormat>());

  Invocation invocation;
  const Command commands(root, invocation);
  add_doctor(commands);
  add_bench(commands);
  add_sim(commands);
  add_estimate(commands);
  add_validate(commands);
  add_report(commands);
  add_run(commands);
  add_record(commands);
  add_trial(commands);
  add_attach(commands);
  add_keygen(commands);
  add_env(commands);
  add_help(commands, root);
  root.footer(kFooter);  // after the commands, which would inherit it

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return show(root, help_or_version);
  } catch (const CLI::ParseError& error) {
    return fail(kExitUsage, explain(root, error));
  }

  for (const std::string& warning : unknown_environment()) report::say(visible(warning) + "\n");
  const Status status = invocation.job();
  if (status) return 0;
  return fail(status.error().kind == ErrorKind::usage ? kExitUsage : kExitFailed,
              status.error().message);
}

}  // namespace

// What nobody foresaw (no memory, no threads, a library's own complaint) is an error like others.
int run(int argc, const char* const* argv) {
  occupy_standard_descriptors();
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail(kExitFailed, "there is not enough memory for this");
  } catch (const std::exception& error) {
    return fail(kExitFailed, error.what());
  }
}

}  // namespace sealane::cli
