// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cli/number.h"
#include "cli/suggest.h"

namespace sealane::cli {
namespace {

// A part of the runtime, and what it does nothing without.
struct Part {
  std::string name;
  std::vector<std::string> needs;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all = {
      {"engine", {}},           {"async", {}},
      {"parallel", {"engine"}}, {"coalesce", {"async"}},
      {"register", {}},         {"speculate", {"engine", "async", "parallel"}},
      {"pinned", {}},           {"defer", {"engine", "async", "parallel"}},
      {"default", {}},          {"none", {}},
  };
  return all;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Status check_enable(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  std::vector<std::string> known;
  for (const Part& part : parts()) known.push_back(part.name);
  for (const std::string& word : words) {
    if (!contains(known, word)) {
      return usage_error(
          fmt::format("--enable: there is no part '{}'{}", word, did_you_mean(word, known)));
    }
  }
  if (contains(words, "none") && words.size() > 1) {
    return usage_error("--enable: none means none; leave it out, or the others");
  }
  if (contains(words, "default")) return {};  // it has what the others need
  for (const Part& part : parts()) {
    if (!contains(words, part.name)) continue;
    for (const std::string& need : part.needs) {
      if (contains(words, need)) continue;
      return usage_error(fmt::format("--enable: {} does nothing without {}", part.name,
                                     fmt::join(part.needs, " and ")));
    }
  }
  return {};
}

// Of the emulated GPU's flags the one that was given, or nothing.
const char* emulator_flag(const RunOptions& options) {
  for (const auto* list : {&options.switches, &options.unconfirmed}) {
    for (const Switch& one : *list) {
      if (!one.value.empty()) return one.flag;
    }
  }
  if (!options.truth.empty()) return "--truth";
  if (!options.kernels.empty()) return "--kernels";
  return options.pacing.empty() ? nullptr : "--pacing";
}

void add_number(CLI::App& command, NumberSwitch& number) {
  command.add_option(number.flag, number.value, number.help)
      ->type_name("N")
      ->check(whole_number(number.least, number.most));
}

}  // namespace

const std::string& RunOptions::value_of(std::string_view variable) const {
  static const std::string none;
  for (const auto* list : {&switches, &unconfirmed}) {
    for (const Switch& one : *list) {
      if (one.variable == variable) return one.value;
    }
  }
  return none;
}

void RunOptions::set(std::string_view variable, std::string value) {
  for (Switch& one : switches) {
    if (one.variable == variable) one.value = value;
  }
  for (NumberSwitch& one : runtime) {
    if (one.variable == variable) one.value = value;
  }
}

Status check(const RunOptions& options) {
  if (options.observe && !options.enable.empty()) {
    return usage_error("--observe changes nothing: it cannot be combined with --enable");
  }
  if (!options.policy.empty() && (options.observe || !options.enable.empty())) {
    return usage_error(
        "--policy is a set of switches: it cannot be combined with --enable or --observe");
  }
  if (Status status = check_enable(options.enable); !status) return status;
  if (const char* flag = emulator_flag(options); flag != nullptr && !options.emulate) {
    return usage_error(fmt::format("{} is of the emulated GPU: add --emulate", flag));
  }
  if (!options.platform.empty() && !options.emulate && !options.watches()) {
    return usage_error(
        "--platform does nothing without --emulate, --observe, --stats or --metrics");
  }
  for (const NumberSwitch& one : options.runtime) {
    if (one.value.empty() || options.serves()) continue;
    return usage_error(
        fmt::format("{} does nothing: no part of the runtime is on; add --enable "
                    "or --policy",
                    one.flag));
  }
  if (!options.metrics_seconds.value.empty() && options.metrics.empty()) {
    return usage_error("--metrics-seconds does nothing without --metrics");
  }
  return {};
}

void add_runtime_options(CLI::App& command, RunOptions& options) {
  command.add_flag("--observe", options.observe,
                   "Change nothing: check what Sealane assumes, and say what it would save");
  command
      .add_option("--enable", options.enable,
                  "Parts, comma-separated: engine, async, parallel, coalesce, register, speculate, "
                  "pinned, defer; default (the first five, and speculate where it pays); none "
                  "[default; with --emulate none]")
      ->type_name("PART,...")
      ->check([](const std::string& list) { return list.empty() ? "is empty; write none" : ""; });
  command
      .add_option("--policy", options.policy,
                  "A set of parts by its name, to compare: stock, parallel, pipellm, sealane")
      ->type_name("NAME")
      ->check([](const std::string& name) -> std::string {
        const std::vector<std::string> known = {"stock", "parallel", "pipellm", "sealane"};
        if (contains(known, name)) return {};
        return fmt::format("there is no policy '{}'{}", name, did_you_mean(name, known));
      });
  for (NumberSwitch& one : options.runtime) add_number(command, one);
  command
      .add_option("--stats", options.stats,
                  "Write counters as JSON to this file and a summary to stderr at the end")
      ->type_name("FILE");
  command
      .add_option("--metrics", options.metrics,
                  "Keep a Prometheus text file up to date, for a node exporter (a directory: a "
                  "file per process)")
      ->type_name("PATH");
  add_number(command, options.metrics_seconds);
  command.add_option("--trace", options.trace, "Write a Chrome trace, for ui.perfetto.dev")
      ->type_name("FILE");
}

void add_emulator_options(CLI::App& command, RunOptions& options) {
  constexpr const char* kGroup = "The emulated GPU (docs/emulator.md)";
  command.add_flag("--emulate", options.emulate, "On the emulated confidential GPU")->group(kGroup);
  command
      .add_option("--platform", options.platform,
                  "Time (--emulate) or estimates as on this machine (see platforms/)")
      ->type_name("P")
      ->group(kGroup);
  command
      .add_option("--pacing", options.pacing,
                  "none: as fast as possible; model: at modelled speed [model with --platform or "
                  "--dilation]")
      ->type_name("none|model")
      ->check([](const std::string& word) {
        return word == "none" || word == "model" ? "" : "is none or model";
      })
      ->group(kGroup);
  for (Switch& one : options.switches) {
    command.add_option(one.flag, one.value, one.help)->type_name(one.takes)->group(kGroup);
  }
  command.add_option("--kernels", options.kernels, "Shared objects with kernels")
      ->type_name("FILE[:FILE]")
      ->group(kGroup);
  command
      .add_option("--truth", options.truth, "Write what really happened to this file at the end")
      ->type_name("FILE")
      ->group(kGroup);
  for (Switch& one : options.unconfirmed) {
    command.add_option(one.flag, one.value, one.help)
        ->type_name(one.takes)
        ->group("What nobody has confirmed about the real driver, emulated");
  }
}

}  // namespace sealane::cli
