// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_environment.h"

#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "base/output_file.h"
#include "base/try.h"
#include "base/words.h"
#include "cli/program_file.h"
#include "platform/reader.h"

namespace sealane::cli {
namespace {

Result<std::string> emulator_directory() {
  return directory_of("the emulated GPU", "libcuda.so.1",
                      {"lib/emu", SEALANE_LIBDIR "/sealane/emu"});
}

constexpr const char* kPreload = "libsealane-preload.so";

Result<std::string> preload_directory() {
  return directory_of("the runtime", kPreload, {"lib/sealane", SEALANE_LIBDIR "/sealane"});
}

// The loader's lists have no quoting.
Status add_library_path(Environment& out, const std::string& directory) {
  if (directory.find_first_of(":;") != std::string::npos) {
    return io_error(
        fmt::format("installed below {}: the loader cannot be told of a directory with "
                    "':' or ';' in its name; move it",
                    directory));
  }
  const auto known = std::find_if(out.begin(), out.end(),
                                  [](const auto& one) { return one.first == "LD_LIBRARY_PATH"; });
  const char* inherited = std::getenv("LD_LIBRARY_PATH");
  const std::string before = known != out.end()     ? known->second
                             : inherited == nullptr ? ""
                                                    : inherited;
  const bool there = (":" + before + ":").find(":" + directory + ":") != std::string::npos;
  if (known != out.end() && there) return {};
  const std::string path = before.empty() ? directory : directory + ":" + before;
  if (known != out.end()) {
    known->second = path;
  } else {
    out.emplace_back("LD_LIBRARY_PATH", path);
  }
  return {};
}

// LD_PRELOAD is cut at spaces too, which directories to search are not.
Result<std::string> preload_name(Environment& out, const std::string& directory,
                                 const std::string& file) {
  const std::string path = directory + "/" + file;
  if (path.find_first_of(" \t\n:;") == std::string::npos) return path;
  SEALANE_TRY(add_library_path(out, directory));
  return file;
}

// Whole, because programs change their directory.
Result<std::string> whole_name(const std::string& path) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  if (!failed) return whole.string();
  return io_error(
      fmt::format("{}: the directory this was started in is gone; give the whole name", path));
}

Status add_file(Environment& out, const char* variable, const std::string& path) {
  if (path.empty()) return {};
  SEALANE_LET(auto whole, whole_name(path));
  out.emplace_back(variable, std::move(whole));
  return {};
}

// Every number of a platform file as one word; whoever reads them takes those he knows.
Result<std::string> model_words(const std::string& name) {
  SEALANE_LET(const auto platform, find_platform(name));
  std::string words;
  for (const Parameter& parameter : platform.parameters) {
    if (parameter.value.find(' ') != std::string::npos) continue;  // a name, not a number
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", parameter.key, parameter.value);
  }
  return words;
}

// What estimates are made from.
Status add_costs(const RunOptions& options, Environment& out) {
  if (options.platform.empty() || !options.watches()) return {};
  SEALANE_LET(const auto words, model_words(options.platform));
  out.emplace_back("SEALANE_COSTS", fmt::format("platform={} {}", options.platform, words));
  return {};
}

// Built with a sanitizer our libraries cannot be loaded into programs that have none.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// What is loaded before anything of the program's: the transparent runtime in front, then the
// emulated CUDA runtimes, which a DT_RPATH of the program would otherwise keep from being found.
Status add_preloads(const RunOptions& options, Environment& out) {
  std::string list;
  const auto add = [&](const std::string& name) { list += (list.empty() ? "" : ":") + name; };
  if (options.preloads()) {
    SEALANE_LET(const auto directory, preload_directory());
    SEALANE_LET(const auto name, preload_name(out, directory, kPreload));
    add(name);
  }
  if (options.emulate && !kSanitized) {
    SEALANE_LET(const auto directory, emulator_directory());
    for (const char* file : {"libcudart.so.12", "libcudart.so.13"}) {
      SEALANE_LET(const auto name, preload_name(out, directory, file));
      add(name);
    }
  }
  if (list.empty()) return {};
  const char* before = std::getenv("LD_PRELOAD");
  if (before != nullptr && *before != '\0') add(before);
  out.emplace_back("LD_PRELOAD", list);
  // A program with AddressSanitizer would refuse to start because something stands before it.
  const char* asan = std::getenv("ASAN_OPTIONS");
  constexpr const char* kNoOrder = "verify_asan_link_order=0";
  const bool asked = asan != nullptr && *asan != '\0';
  out.emplace_back("ASAN_OPTIONS", asked ? fmt::format("{}:{}", kNoOrder, asan) : kNoOrder);
  return {};
}

// What the transparent runtime is told.
Status add_runtime(const RunOptions& options, Environment& out) {
  // On the emulated GPU, and while somebody records, nothing is switched on that was not asked for.
  const bool quiet = options.emulate || !options.record.empty();
  // A flag goes before what this process was started with.
  const bool chosen =
      options.observe || quiet || !options.policy.empty() || !options.enable.empty();
  for (const char* name : {"SEALANE_OBSERVE", "SEALANE_POLICY", "SEALANE_ENABLE"}) {
    if (chosen && std::getenv(name) != nullptr) out.emplace_back(name, "");
  }
  if (options.observe) {
    out.emplace_back("SEALANE_OBSERVE", "1");
  } else if (!options.policy.empty()) {
    out.emplace_back("SEALANE_POLICY", options.policy);
  } else if (!options.enable.empty() || quiet) {
    out.emplace_back("SEALANE_ENABLE", options.enable.empty() ? "none" : options.enable);
  }
  if (options.quiet) out.emplace_back("SEALANE_QUIET", "1");
  for (const Switch& one : options.runtime) {
    if (!one.value.empty()) out.emplace_back(one.variable, one.value);
  }
  if (const Switch& one = options.metrics_seconds; !one.value.empty()) {
    out.emplace_back(one.variable, one.value);
  }
  SEALANE_TRY(add_file(out, "SEALANE_STATS", options.stats));
  SEALANE_TRY(add_file(out, "SEALANE_METRICS", options.metrics));
  SEALANE_TRY(add_file(out, "SEALANE_TRACE", options.trace));
  SEALANE_TRY(add_file(out, "SEALANE_RECORD", options.record));
  return add_costs(options, out);
}

// Files of this directory by their whole names: the loader would look for "kernels.so" elsewhere,
// and programs change their directory.
Result<std::string> whole_names(const std::string& list) {
  std::string out;
  for (std::string& name : split(list, ':')) {
    std::error_code error;
    if (std::filesystem::exists(name, error)) {
      SEALANE_LET(name, whole_name(name));
    }
    out += (out.empty() ? "" : ":") + name;
  }
  return out;
}

// What PyTorch loads by itself when it finds it (adapters/aten), behind the program's own modules.
void add_python_path(Environment& out, const std::string& directory) {
  std::error_code error;
  const std::string python = directory + "/python";
  if (!std::filesystem::exists(python, error)) return;
  const char* inherited = std::getenv("PYTHONPATH");
  const std::string before = inherited == nullptr ? "" : inherited;
  const bool there = (":" + before + ":").find(":" + python + ":") != std::string::npos;
  if (there) return;
  out.emplace_back("PYTHONPATH", before.empty() ? python : before + ":" + python);
}

Status add_emulator(const RunOptions& options, Environment& out) {
  SEALANE_LET(const auto directory, emulator_directory());
  SEALANE_TRY(add_library_path(out, directory));
  add_python_path(out, directory);
  if (options.value_of("SEALANE_EMU_REACH") == "linked") {
    SEALANE_TRY(add_library_path(out, directory + "/linked"));
  }
  for (const auto* list : {&options.switches, &options.unconfirmed}) {
    for (const Switch& one : *list) {
      if (!one.value.empty()) out.emplace_back(one.variable, one.value);
    }
  }
  if (const std::string& list = options.kernels; !list.empty()) {
    SEALANE_LET(auto names, whole_names(list));
    out.emplace_back("SEALANE_EMU_KERNELS", std::move(names));
  }
  SEALANE_TRY(add_file(out, "SEALANE_EMU_STATS", options.truth));
  if (!options.platform.empty()) {
    SEALANE_LET(const auto words, model_words(options.platform));
    out.emplace_back("SEALANE_EMU_MODEL", words);
  }
  const bool paced = !options.platform.empty() || !options.value_of("SEALANE_EMU_DILATION").empty();
  const std::string pacing = options.pacing.empty() ? (paced ? "model" : "none") : options.pacing;
  out.emplace_back("SEALANE_EMU_PACING", pacing);
  return {};
}

std::vector<std::string> inherited_preloads() {
  const char* before = std::getenv("LD_PRELOAD");
  std::string list = before == nullptr ? "" : before;
  std::replace(list.begin(), list.end(), ' ', ':');  // the loader cuts at both
  std::vector<std::string> files;
  for (const std::string& name : split(list, ':')) {
    std::ranges::move(places_of_library(name), std::back_inserter(files));
  }
  return files;
}

}  // namespace

bool inherits_runtime() {
  const char* list = std::getenv("LD_PRELOAD");
  return list != nullptr && std::string_view(list).find(kPreload) != std::string_view::npos;
}

std::vector<std::string> own_libraries() {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& directory : {preload_directory(), emulator_directory()}) {
    if (!directory) continue;  // not installed
    std::error_code failed;
    fs::recursive_directory_iterator at(*directory, failed);
    for (; !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
      files.push_back(at->path().string());
    }
  }
  return files;
}

std::vector<std::string> files_read_by(const RunOptions& options, const std::string& program,
                                       const std::vector<std::string>& command) {
  std::vector<std::string> files = {program, "/dev/stdin", platform_file(options.platform)};
  const auto add = [&](const std::vector<std::string>& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  add(interpreters_of(program));
  for (size_t i = 1; i < command.size(); ++i) {
    files.push_back(command[i]);
    if (const size_t at = command[i].find('='); at != std::string::npos) {
      files.push_back(command[i].substr(at + 1));
    }
  }
  add(split(options.kernels, ':'));
  add(inherited_preloads());
  add(own_libraries());
  std::erase_if(files, [](const std::string& file) {  // where text goes is not read
    const int descriptor = output_descriptor(file);
    return access(file.c_str(), F_OK) != 0 || descriptor == STDOUT_FILENO ||
           descriptor == STDERR_FILENO;
  });
  return files;
}

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

Result<Environment> environment_for(const RunOptions& options) {
  Environment out;
  if (options.emulate) {
    SEALANE_TRY(add_emulator(options, out));
  }
  SEALANE_TRY(add_preloads(options, out));
  if (options.preloads()) {
    SEALANE_TRY(add_runtime(options, out));
  }
  return out;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void enter(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
}

}  // namespace sealane::cli
