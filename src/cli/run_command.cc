// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane run: a program under the transparent runtime, on this machine's GPU or (--emulate) on the
// emulated one. Sets the environment and becomes the program, so its exit code and its signals are
// its own.

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "platform/reader.h"

namespace sealane::cli {
namespace {

// A flag whose value goes to the emulated driver as it is; the driver says what it accepts.
struct Switch {
  const char* flag;
  const char* variable;
  const char* help;
  std::string value;
};

struct RunOptions {
  bool emulate = false;
  bool print_env = false;
  std::string platform;
  std::string pacing;
  std::string enable;  // empty: everything, or nothing on the emulated GPU
  std::vector<std::string> command;
  std::vector<Switch> switches = {
      {"--cc", "SEALANE_EMU_CC", "confidential mode: on (default) or off", {}},
      {"--gpus", "SEALANE_EMU_GPUS", "how many emulated GPUs (1)", {}},
      {"--memory", "SEALANE_EMU_MEMORY", "memory of each, as 512M or 4G", {}},
      {"--dilation", "SEALANE_EMU_DILATION", "K: a modelled second takes K real ones (auto)", {}},
      {"--kernels", "SEALANE_EMU_KERNELS", "shared objects with kernels, colon-separated", {}},
      {"--stats", "SEALANE_EMU_STATS", "write truth counters to this file when it ends", {}},
      {"--adversary", "SEALANE_EMU_ADVERSARY", "ACTION@N[:to_host], see docs/emulator.md", {}},
      {"--rotate", "SEALANE_EMU_ROTATE", "new keys after so many bytes", {}},
      {"--contexts", "SEALANE_EMU_CONTEXTS", "contexts there is room for in CC mode (18)", {}},
      {"--reach", "SEALANE_EMU_REACH", "libcrypto by helper, deepbind, dlsym or linked", {}},
      {"--staged", "SEALANE_EMU_STAGED", "stage host bytes before sealing: on or off", {}},
      {"--aad", "SEALANE_EMU_AAD", "additional data in messages: on or off", {}},
      {"--updates", "SEALANE_EMU_UPDATES", "EVP updates per message (1)", {}},
      {"--fresh-contexts", "SEALANE_EMU_FRESH_CONTEXTS", "an EVP context per message", {}},
      {"--seal-thread", "SEALANE_EMU_SEAL_THREAD", "seal on a thread of the driver", {}},
      {"--chatter", "SEALANE_EMU_CHATTER", "a driver's message before every Nth (0: none)", {}},
      {"--queues", "SEALANE_EMU_QUEUES", "hardware queues of a context (8)", {}},
      {"--memops", "SEALANE_EMU_MEMOPS", "stream memory operations: on or off", {}},
      {"--message", "SEALANE_EMU_MESSAGE", "largest message on the bus (1M)", {}},
      {"--slots", "SEALANE_EMU_SLOTS", "messages in flight (4)", {}},
  };

  // Of the runtime; the preload says what it accepts.
  std::vector<Switch> runtime = {
      {"--verify", "SEALANE_VERIFY", "compare so many answers with libcrypto's", {}},
      {"--workers", "SEALANE_WORKERS", "threads that seal and open (from the cores)", {}},
      {"--staging-mb", "SEALANE_STAGING_MB", "memory for pageable sources on their way (256)", {}},
  };

  bool preloads() const { return !emulate || !enable.empty(); }

  const std::string& value_of(std::string_view variable) const {
    static const std::string none;
    for (const Switch& one : switches) {
      if (one.variable == variable) return one.value;
    }
    return none;
  }
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// The directory of a file beside the program: in a build tree, or installed.
Result<std::string> directory_of(const char* what, const char* file,
                                 std::initializer_list<const char*> places) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto prefix = program.parent_path().parent_path();
  for (const char* place : places) {
    if (std::filesystem::exists(prefix / place / file, error)) return (prefix / place).string();
  }
  return io_error(fmt::format("{} is not installed: no {} in {}", what, file, prefix.string()));
}

Result<std::string> emulator_directory() {
  return directory_of("the emulated GPU", "libcuda.so.1",
                      {"lib/emu", SEALANE_LIBDIR "/sealane/emu"});
}

constexpr const char* kPreload = "libsealane-preload.so";

// The transparent runtime, in front of whatever else is preloaded.
Status add_preload(const RunOptions& options, Environment& out) {
  const auto directory =
      directory_of("the runtime", kPreload, {"lib/sealane", SEALANE_LIBDIR "/sealane"});
  if (!directory) return directory.error();
  const char* before = std::getenv("LD_PRELOAD");
  std::string preload = *directory + "/" + kPreload;
  if (before != nullptr && *before != '\0') preload = preload + ":" + before;
  out.emplace_back("LD_PRELOAD", preload);
  if (!options.enable.empty()) out.emplace_back("SEALANE_ENABLE", options.enable);
  for (const Switch& one : options.runtime) {
    if (!one.value.empty()) out.emplace_back(one.variable, one.value);
  }
  return {};
}

// Every number of a platform file as one word; the driver takes those it knows.
Result<std::string> model_words(const std::string& name) {
  const auto platform = find_platform(name);
  if (!platform) return platform.error();
  std::string words;
  for (const Parameter& parameter : platform->parameters) {
    if (parameter.value.find(' ') != std::string::npos) continue;  // a name, not a number
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", parameter.key, parameter.value);
  }
  return words;
}

Status add_emulator(const RunOptions& options, Environment& out) {
  const auto directory = emulator_directory();
  if (!directory) return directory.error();
  const char* before = std::getenv("LD_LIBRARY_PATH");
  std::string path = *directory;
  if (options.value_of("SEALANE_EMU_REACH") == "linked") path = path + "/linked:" + path;
  if (before != nullptr && *before != '\0') path = path + ":" + before;
  out.emplace_back("LD_LIBRARY_PATH", path);
  for (const Switch& one : options.switches) {
    if (!one.value.empty()) out.emplace_back(one.variable, one.value);
  }
  if (!options.platform.empty()) {
    const auto words = model_words(options.platform);
    if (!words) return words.error();
    out.emplace_back("SEALANE_EMU_MODEL", *words);
  }
  const bool paced = !options.platform.empty() || !options.value_of("SEALANE_EMU_DILATION").empty();
  const std::string pacing = options.pacing.empty() ? (paced ? "model" : "none") : options.pacing;
  out.emplace_back("SEALANE_EMU_PACING", pacing);
  return {};
}

Result<Environment> environment_for(const RunOptions& options) {
  Environment out;
  if (options.emulate) {
    if (const auto added = add_emulator(options, out); !added) return added.error();
  }
  if (options.preloads()) {
    if (const auto added = add_preload(options, out); !added) return added.error();
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Status run(const RunOptions& options) {
  const auto environment = environment_for(options);
  if (!environment) return environment.error();
  if (options.print_env) {
    for (const auto& [name, value] : *environment) {
      fmt::print("export {}={}\n", name, quoted(value));
    }
    return {};
  }
  if (options.command.empty()) {
    return usage_error("run needs a program: sealane run [--emulate] -- PROGRAM [ARGUMENT...]");
  }
  if (options.emulate) {
    const bool cc = options.value_of("SEALANE_EMU_CC") != "off";
    fmt::print(
        stderr,
        "sealane: EMULATED GPU, confidential mode {}. It protects nothing: for tests only.\n",
        cc ? "on" : "off");
  }
  for (const auto& [name, value] : *environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  execvp(words[0], words.data());
  return io_error(fmt::format("cannot run {}", options.command[0]), errno);
}

}  // namespace

void add_run(CLI::App& root, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      root.add_subcommand("run", "Run a CUDA program under the transparent runtime");
  command->add_flag("--emulate", options->emulate, "On the emulated confidential GPU");
  command->add_option("--enable", options->enable,
                      "engine,async,parallel,pinned or none (all; with --emulate none)");
  for (Switch& one : options->runtime) command->add_option(one.flag, one.value, one.help);
  command->add_option("--platform", options->platform,
                      "Time as on this machine (a name or file; see platforms/)");
  command
      ->add_option("--pacing", options->pacing,
                   "none: as fast as possible; model: at modelled speed (default with --platform)")
      ->check(CLI::IsMember({"none", "model"}));
  for (Switch& one : options->switches) command->add_option(one.flag, one.value, one.help);
  command->add_flag("--print-env", options->print_env,
                    "Print the environment instead, for containers and service files");
  command->add_option("command", options->command, "The program and its arguments, after --");
  command->callback(
      [options, &invocation] { invocation.job = [options] { return run(*options); }; });
}

}  // namespace sealane::cli
