// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "base/byte_count.h"
#include "base/try.h"
#include "base/words.h"
#include "core/policy.h"
#include "seal/engine.h"

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

std::string variable(const std::string& name) {
  const char* found = std::getenv(name.c_str());
  return found == nullptr ? "" : found;
}

// Nothing, or a usage error that names the variable.
Status refused(const std::string& name, const std::string& problem) {
  return problem.empty() ? Status() : Status(usage_error(fmt::format("{}: {}", name, problem)));
}

// Takes a variable's value, unless a flag has one.
Status inherit(const std::string& name, std::string& to, const FlagCheck& check) {
  if (!to.empty()) return {};
  to = variable(name);
  return to.empty() ? Status() : refused(name, check(to));
}

Status inherit(Switch& one, const FlagCheck& check) {
  if (!one.value.empty()) return {};
  SEALANE_TRY(inherit(one.variable, one.value, check));
  one.inherited = !one.value.empty();
  return {};
}

// Of whoever does not take them from the environment: the emulated GPU reads them all the same.
Status check_switches(const RunOptions& options) {
  for (const auto* list : {&options.switches, &options.unconfirmed}) {
    for (const Switch& one : *list) {
      const std::string inherited = one.value.empty() ? variable(one.variable) : "";
      if (!options.emulate || inherited.empty()) continue;
      SEALANE_TRY(refused(one.variable, check_switch(one, inherited)));
    }
  }
  return {};
}

// "key=value" words, as those of a platform file: whoever reads them skips what he does not know,
// so that a slip would mean the numbers he has anyway.
std::string check_model(const std::string& text) {
  for (const std::string& word : split(text, ' ')) {
    if (word.empty() || word.starts_with("platform=")) continue;
    const size_t equals = word.find('=');
    const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
    const bool truth = value == "true" || value == "false";
    if (equals != 0 && (truth || real_number(0, 1e18)(value).empty())) continue;
    return fmt::format("'{}' is not a word such as to_device.cc.toll_us=15.3", word);
  }
  return {};
}

// What the emulated GPU would read by itself, if the program ever called it.
Status inherit_emulator(RunOptions& options) {
  // A flag that asks for a pace goes before the variable, as one that names it.
  const bool paced = !options.platform.empty() || !options.value_of("SEALANE_EMU_DILATION").empty();
  if (paced && options.pacing.empty()) options.pacing = "model";
  for (auto* list : {&options.switches, &options.unconfirmed}) {
    for (Switch& one : *list) {
      SEALANE_TRY(inherit(one, [&](const std::string& value) { return check_switch(one, value); }));
      if (one.takes == "on|off" && one.value == "1") one.value = "on";
      if (one.takes == "on|off" && one.value == "0") one.value = "off";
    }
  }
  SEALANE_TRY(inherit("SEALANE_EMU_PACING", options.pacing, one_of({"none", "model"})));
  SEALANE_TRY(inherit("SEALANE_EMU_STATS", options.truth, &check_program_output_name));
  SEALANE_TRY(inherit("SEALANE_EMU_KERNELS", options.kernels, [](const auto&) { return ""; }));
  std::string workers;
  SEALANE_TRY(inherit("SEALANE_EMU_WORKERS", workers, whole_number(0, 1024)));
  std::string aten;
  SEALANE_TRY(inherit("SEALANE_EMU_ATEN", aten, one_of({"on", "off"})));
  if (!options.platform.empty()) return {};
  std::string model;
  return inherit("SEALANE_EMU_MODEL", model, &check_model);
}

// Which parts are on is one choice: what a flag says of it leaves no room for a variable.
Status inherit_parts(RunOptions& options) {
  const bool chosen = options.observe || !options.policy.empty() || !options.enable.empty();
  if (chosen || !options.record.empty()) return {};
  std::string observe;
  SEALANE_TRY(inherit("SEALANE_OBSERVE", observe, one_of({"0", "1"})));
  options.observe = observe == "1";
  if (!options.observe) options.enable = variable("SEALANE_ENABLE");
  if (!options.observe && options.enable.empty()) options.policy = variable("SEALANE_POLICY");
  return {};
}

// What the runtime would say one line about, or take for something else.
Status inherit_runtime(RunOptions& options) {
  const auto number = [](Switch& one) { return inherit(one, whole_number(one.least, one.most)); };
  SEALANE_TRY(number(options.metrics_seconds));
  for (Switch& one : options.runtime) {
    SEALANE_TRY(number(one));
  }
  if (options.platform.empty()) {
    std::string costs;
    SEALANE_TRY(inherit("SEALANE_COSTS", costs, &check_model));
  }
  if (variable("SEALANE_AEAD").empty() && variable("SEALANE_CPU").empty()) return {};
  const auto engine = chosen_engine();
  const bool wrong = !engine && engine.error().kind == ErrorKind::usage;
  return wrong ? Status(engine.error()) : Status();
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

Status take_from_environment(RunOptions& options) {
  const std::string disabled = variable("SEALANE_DISABLE");
  options.disabled = !disabled.empty() && disabled != "0";
  SEALANE_TRY(inherit_parts(options));
  for (const OutputVariable& one : kOutputVariables) {
    if (one.of_emulator) continue;  // below
    SEALANE_TRY(inherit(one.name, options.*one.file, &check_program_output_name));
  }
  if (options.emulate) {
    SEALANE_TRY(inherit_emulator(options));
  }
  return options.preloads() && !options.disabled ? inherit_runtime(options) : Status();
}

// Where the program runs here, which --print-env does not say.
Status check_kernels(const RunOptions& options) {
  for (const std::string& file : split(options.kernels, ':')) {
    // Other names the loader looks for when the program runs.
    if (file.find('/') == std::string::npos || access(file.c_str(), R_OK) == 0) continue;
    return usage_error(fmt::format("{} cannot be read, of the kernels (--kernels)", file));
  }
  return {};
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
    if (one.value.empty() || one.inherited || options.serves()) continue;
    return usage_error(
        fmt::format("{} does nothing: no part of the runtime is on; add --enable "
                    "or --policy",
                    one.flag));
  }
  const Switch& pause = options.metrics_seconds;
  if (!pause.value.empty() && !pause.inherited && options.metrics.empty()) {
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
