// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "base/byte_count.h"
#include "base/try.h"
#include "base/words.h"
#include "core/policy.h"

namespace sealane::cli {
namespace {

// A part of the runtime, and what it does nothing without.
struct Part {
  std::string name;
  std::vector<std::string> needs;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all = {
      {"engine", {}},          {"async", {}},    {"parallel", {"engine"}},
      {"coalesce", {"async"}}, {"register", {}}, {"speculate", {"engine", "async", "parallel"}},
      {"pinned", {}},          {"default", {}},  {"none", {}},
  };
  return all;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Status check_enable(const std::string& list) {
  const std::vector<std::string> words = split(list, ',');
  const std::vector<std::string> known = names_of(parts());
  for (const std::string& word : words) {
    if (!contains(known, word)) {
      return usage_error(
          fmt::format("--enable: there is no part '{}'{}", word, did_you_mean(word, known)));
    }
  }
  if (contains(words, "none") && words.size() > 1) {
    return usage_error("--enable: none means none; leave it out, or the others");
  }
  for (const Part& part : parts()) {
    if (!contains(words, part.name)) continue;
    for (const std::string& need : part.needs) {
      if (contains(words, need) || contains(words, "default")) continue;
      return usage_error(fmt::format("--enable: {} does nothing without {}", part.name,
                                     fmt::join(part.needs, " and ")));
    }
  }
  return {};
}

// The paper's rules are the simulator's alone.
Status check_policy(const std::string& name) {
  std::vector<std::string> known;
  for (const Policy& policy : policies()) {
    if (policy.runs_live()) known.emplace_back(policy.name);
  }
  if (name.empty() || contains(known, name)) return {};
  return usage_error(
      fmt::format("--policy: there is no policy '{}'{}", name, did_you_mean(name, known)));
}

// Of the emulated GPU's flags the one that was given, or nothing.
std::string emulator_flag(const RunOptions& options) {
  for (const auto* list : {&options.switches, &options.unconfirmed}) {
    for (const Switch& one : *list) {
      if (!one.value.empty()) return one.flag;
    }
  }
  if (!options.truth.empty()) return "--truth";
  if (!options.kernels.empty()) return "--kernels";
  return options.pacing.empty() ? "" : "--pacing";
}

// Says what is wrong with a value, or nothing: as src/emu/config reads it.
std::string check_switch(const Switch& one, const std::string& value) {
  const std::string_view takes = one.takes;
  const auto among = [&](const std::vector<std::string>& words) -> std::string {
    if (contains(words, value)) return {};
    return fmt::format("'{}' is not one of {}", value, fmt::join(words, ", "));
  };
  if (takes == "on|off") return among({"on", "off", "1", "0"});
  if (takes == "HOW") return among({"helper", "deepbind", "dlsym", "linked", "own"});
  if (takes.find('|') != takes.npos) return among(split(takes, '|'));
  if (takes == "K") return value == "auto" ? "" : real_number(1, 10000)(value);
  if (takes == "X.Y") {
    static const std::regex capability("([5-9]|1[0-2])\\.?[0-9]");
    if (std::regex_match(value, capability)) return {};
    return fmt::format("'{}' is not a number from 5.0 to 12.9", value);
  }
  if (takes == "memory,races") return among({"memory", "races", "memory,races", "races,memory"});
  if (takes == "ACTION@N") {
    static const std::regex attack(
        "(flip|drop|duplicate|swap|truncate|replay)@0*[1-9][0-9]{0,17}[KMG]?(:to_device|:to_host)"
        "?");
    if (std::regex_match(value, attack)) return {};
    return fmt::format(
        "'{}' is not ACTION@N[:to_device|:to_host] with an action of flip, drop, duplicate, swap, "
        "truncate, replay",
        value);
  }
  // The driver knows no "64k".
  const bool small = value.find_first_of("kmg") != std::string::npos;
  const auto number = value == "0" ? Result<uint64_t>(0) : parse_byte_count(value, one.most);
  if (!small && number && *number >= one.least) return {};
  return fmt::format("'{}' is not a number from {} to {}", value, one.least, one.most);
}

void add_number(const Command& command, Switch& number) {
  command.value(number.flag, number.value, "N", number.help,
                whole_number(number.least, number.most));
}

void add_switch(const Command& command, Switch& one) {
  command.value(one.flag, one.value, one.takes, one.help,
                [form = one](const std::string& value) { return check_switch(form, value); });
}

// What the environment says is the emulated GPU's to read, but may never be.
Status check_switches(const RunOptions& options) {
  for (const auto* list : {&options.switches, &options.unconfirmed}) {
    for (const Switch& one : *list) {
      const char* inherited = std::getenv(one.variable.c_str());
      const bool used = one.value.empty() && inherited != nullptr && *inherited != '\0';
      if (!options.emulate || !used) continue;
      if (const std::string problem = check_switch(one, inherited); !problem.empty()) {
        return usage_error(fmt::format("{}: {}", one.variable, problem));
      }
    }
  }
  return {};
}

std::string variable_of(std::string name, std::string_view flag) {
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

Switch emulated(const char* flag, const char* takes, const char* help, uint64_t least,
                uint64_t most) {
  return {flag, variable_of("SEALANE_EMU_", flag), takes, help, least, most};
}

Switch runtime_number(const char* flag, const char* help, uint64_t least, uint64_t most) {
  return {flag, variable_of("SEALANE_", flag), "N", help, least, most};
}

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
  for (Switch& one : runtime) {
    if (one.variable == variable) one.value = value;
  }
}

void take_from_environment(RunOptions& options) {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  const bool chosen = options.observe || !options.policy.empty() || !options.enable.empty();
  if (!chosen && options.record.empty()) {
    const std::string observe = value("SEALANE_OBSERVE");
    options.observe = !observe.empty() && observe != "0";
    if (!options.observe) options.enable = value("SEALANE_ENABLE");
    if (!options.observe && options.enable.empty()) options.policy = value("SEALANE_POLICY");
  }
  for (const auto& [variable, to] : {std::pair("SEALANE_STATS", &options.stats),
                                     {"SEALANE_METRICS", &options.metrics},
                                     {"SEALANE_TRACE", &options.trace},
                                     {"SEALANE_RECORD", &options.record}}) {
    if (to->empty()) *to = value(variable);
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
  SEALANE_TRY(check_enable(options.enable));
  SEALANE_TRY(check_policy(options.policy));
  SEALANE_TRY(check_switches(options));
  if (const std::string flag = emulator_flag(options); !flag.empty() && !options.emulate) {
    return usage_error(fmt::format("{} is of the emulated GPU: add --emulate", flag));
  }
  if (!options.platform.empty() && !options.emulate && !options.watches()) {
    return usage_error(
        "--platform does nothing without --emulate, --observe, --stats or --metrics");
  }
  for (const Switch& one : options.runtime) {
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

void add_runtime_options(const Command& command, RunOptions& options) {
  command.flag("--observe", options.observe,
               "Change nothing: check what Sealane assumes, and say what it would save");
  command.value("--enable", options.enable, "PART,...",
                "Parts, comma-separated: engine, async, parallel, coalesce, register, speculate, "
                "pinned; default (the first five, and speculate where it pays: so it is "
                "without --emulate); or none",
                [](const std::string& list) { return list.empty() ? "is empty; write none" : ""; });
  command.value("--policy", options.policy, "NAME",
                "A set of parts by its name, to compare: stock, parallel, sealane "
                "(the default: seals ahead where it pays), speculate (always)",
                [](const std::string& name) { return name.empty() ? "is empty" : ""; });
  for (Switch& one : options.runtime) add_number(command, one);
  command.flag("--quiet", options.quiet, "Leave out the line on stderr that says what is active");
  command.output(
      "--stats", options.stats,
      "Write counters (with --observe its findings, too) as JSON to this file and a summary "
      "to stderr at the end",
      &check_program_output_name);
  command.value("--metrics", options.metrics, "PATH",
                "Keep a Prometheus text file up to date, for a node exporter (a directory: a file "
                "per process)",
                &check_program_output_name);
  add_number(command, options.metrics_seconds);
  command.output("--trace", options.trace, "Write a Chrome trace, for ui.perfetto.dev",
                 &check_program_output_name);
}

void add_emulator_options(const Command& command, RunOptions& options) {
  const Command emulator = command.titled("The emulated GPU (docs/emulator.md)");
  emulator.flag("--emulate", options.emulate, "On the emulated confidential GPU");
  emulator.value("--platform", options.platform, "P",
                 "Time (--emulate) or estimates as on this machine (see platforms/)");
  emulator.value("--pacing", options.pacing, "none|model",
                 "none: as fast as possible; model: at modelled speed [model with --platform or "
                 "--dilation]",
                 one_of({"none", "model"}));
  for (Switch& one : options.switches) add_switch(emulator, one);
  emulator.value("--kernels", options.kernels, "FILE[:FILE]", "Shared objects with kernels");
  emulator.output("--truth", options.truth, "Write what really happened to this file at the end",
                  &check_program_output_name);
  const Command unconfirmed =
      command.titled("What nobody has confirmed about the real driver, emulated");
  for (Switch& one : options.unconfirmed) add_switch(unconfirmed, one);
}

}  // namespace sealane::cli
