// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_findings.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string.h>

#include <filesystem>

#include "cli/run_environment.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

using nlohmann::json;

constexpr std::pair<Ending, const char*> kEndings[] = {{Ending::done, "done"},
                                                       {Ending::failed, "failed"},
                                                       {Ending::crashed, "crashed"},
                                                       {Ending::hung, "hung"}};
constexpr std::pair<Sight, const char*> kSights[] = {{Sight::unknown, "unknown"},
                                                     {Sight::nothing, "nothing"},
                                                     {Sight::some, "some"},
                                                     {Sight::all, "all"}};

template <typename Kind, size_t N>
const char* word_of(const std::pair<Kind, const char*> (&words)[N], Kind kind) {
  for (const auto& [one, word] : words) {
    if (one == kind) return word;
  }
  return "unknown";
}

template <typename Kind, size_t N>
bool find_word(const std::pair<Kind, const char*> (&words)[N], const std::string& word, Kind& to) {
  for (const auto& [one, name] : words) {
    if (word == name) return to = one, true;
  }
  return false;
}

// What was not as it was without: its end, or else its output.
std::string how_it_differs(const TrialOutcome& outcome) {
  if (outcome.wrong_answer) return "an answer of ours was not libcrypto's";
  if (outcome.ending != Ending::done) return describe_end(outcome);
  if (!outcome.difference.empty()) return outcome.difference;
  return "another output";
}

std::string broken_part(const TrialPlan& plan) {
  return plan.broken()->kind == StepKind::verify ? "engine"
                                                 : trial_parts()[plan.broken()->part].name;
}

std::string gain_of(const TrialPlan& plan) {
  const auto part = plan.recommended();
  if (!part) return "";
  const TrialTimes times = plan.times_of(*part);
  return fmt::format("{} takes {:.2f} of the plain program's time ({:.2f} to {:.2f} in {} round{})",
                     trial_parts()[*part].name, times.ratio, times.least, times.most, times.rounds,
                     times.rounds == 1 ? "" : "s");
}

json times_json(const TrialTimes& times) {
  return {{"rounds", times.rounds},
          {"seconds", times.seconds},
          {"ratio", times.ratio},
          {"least", times.least},
          {"most", times.most}};
}

std::string state_of(const TrialPlan& plan, size_t part) {
  if (!plan.tries(part)) return "of no use here";
  if (plan.passed(part)) return "same";
  const auto& broken = plan.broken();
  const bool blamed = plan.verdict() == TrialVerdict::part_breaks && broken &&
                      (broken->kind == StepKind::verify ? part == 0 : broken->part == part);
  return blamed ? "BREAKS" : "not tried";
}

json parts_json(const TrialPlan& plan) {
  json parts = json::array();
  if (plan.plain_times().rounds == 0 && plan.verdict() != TrialVerdict::part_breaks) return parts;
  for (size_t part = 0; part < trial_parts().size(); ++part) {
    json one = times_json(plan.times_of(part));
    one["name"] = trial_parts()[part].name;
    one["enable"] = plan.tries(part) ? plan.enable_of(part) : "";
    one["state"] = state_of(plan, part);
    parts.push_back(std::move(one));
  }
  return parts;
}

}  // namespace

std::string describe_end(const TrialOutcome& outcome) {
  switch (outcome.ending) {
    case Ending::done:
      return "done";
    case Ending::failed:
      return fmt::format("exit code {}", outcome.code);
    case Ending::crashed: {
      const char* name = sigdescr_np(outcome.code);
      return fmt::format("signal {} ({})", outcome.code, name == nullptr ? "unknown" : name);
    }
    case Ending::hung:
      return fmt::format("no end after {:.0f} s", outcome.seconds);
  }
  return "unknown";
}

json to_json(const TrialStep& step, const TrialOutcome& outcome) {
  return {{"name", name_of(step)},
          {"ended", describe_end(outcome)},
          {"ending", word_of(kEndings, outcome.ending)},
          {"code", outcome.code},
          {"seconds", outcome.seconds},
          {"output", outcome.output},
          {"difference", outcome.difference},
          {"wrong_answer", outcome.wrong_answer},
          {"said", outcome.said},
          {"page", outcome.page},
          {"confidential", outcome.confidential},
          {"sight", word_of(kSights, outcome.sight)}};
}

Result<TrialOutcome> outcome_from(const json& run) {
  TrialOutcome out;
  try {
    const bool known = find_word(kEndings, run.at("ending").get<std::string>(), out.ending) &&
                       find_word(kSights, run.at("sight").get<std::string>(), out.sight);
    if (!known) return io_error("an unknown word in a run");
    out.code = run.at("code");
    out.seconds = run.at("seconds");
    out.output = run.at("output");
    out.difference = run.at("difference");
    out.wrong_answer = run.at("wrong_answer");
    out.said = run.at("said").get<std::vector<std::string>>();
    out.page = run.at("page");
    out.confidential = run.at("confidential");
  } catch (const json::exception&) {
    return io_error("a run that is not written down whole");
  }
  return out;
}

std::string headline(const TrialPlan& plan) {
  switch (plan.verdict()) {
    case TrialVerdict::unfinished:
      return "The trial is not finished.";
    case TrialVerdict::fine:
      return fmt::format("Every part works with this program: {}.", gain_of(plan));
    case TrialVerdict::limited:
      return fmt::format(
          "The driver seals where Sealane does not see it, so engine, parallel and speculate are "
          "of no use here; the rest works: {}.",
          gain_of(plan));
    case TrialVerdict::part_breaks:
      return fmt::format("With `{}` the program is not what it was: {}.", broken_part(plan),
                         how_it_differs(plan.broken_outcome()));
    case TrialVerdict::observe_breaks:
      return fmt::format("Already watched (--observe) the program is not what it was: {}.",
                         how_it_differs(plan.broken_outcome()));
    case TrialVerdict::not_reproducible:
      return fmt::format(
          "The program alone does not say the same twice, so nothing can be compared ({}): {}.",
          name_of(*plan.broken()), how_it_differs(plan.broken_outcome()));
    case TrialVerdict::program_fails:
      return fmt::format("The program fails without Sealane ({}): {}.", name_of(*plan.broken()),
                         describe_end(plan.broken_outcome()));
    case TrialVerdict::program_hangs:
      return fmt::format("The program does not end without Sealane ({}): {}.",
                         name_of(*plan.broken()), describe_end(plan.broken_outcome()));
    case TrialVerdict::machine_unfit:
      return "This machine is not fit: `sealane doctor` failed.";
    case TrialVerdict::gpu_unused:
      return "The program used no GPU, or none that Sealane could see: nothing to try.";
    case TrialVerdict::not_confidential:
      return "Confidential mode is off: copies cost nothing extra, and nothing can be won.";
  }
  return "";
}

std::vector<std::string> advice(const TrialPlan& plan) {
  std::vector<std::string> out;
  const auto part = plan.recommended();
  if (part && plan.times_of(*part).ratio >= 1) {
    out.emplace_back(
        "No time was won. A program that is bound by its kernels, or that starts longer than it "
        "runs, gains little; give it a longer job before you decide.");
  }
  switch (plan.verdict()) {
    case TrialVerdict::part_breaks:
    case TrialVerdict::observe_breaks:
      out.emplace_back(part
                           ? "The line below leaves that part out; everything it uses was the same."
                           : "Run the program without Sealane.");
      out.emplace_back("Please send us the bundle: this should not happen.");
      break;
    case TrialVerdict::not_reproducible:
      out.emplace_back(
          "Fix its seed; or mask what may differ: --mask 'REGULAR EXPRESSION'; or compare files "
          "instead: --ignore-stdout --compare FILE.");
      break;
    case TrialVerdict::program_hangs:
      out.emplace_back(
          "A server never ends: give it a job that does. If it only takes longer: --limit "
          "SECONDS.");
      break;
    case TrialVerdict::program_fails:
      out.emplace_back("Its output and its errors are in the directory of the trial.");
      break;
    case TrialVerdict::machine_unfit:
      out.emplace_back("Follow doctor's advice, then run the trial again.");
      break;
    case TrialVerdict::gpu_unused:
      out.emplace_back(
          "Is it linked statically to CUDA's driver, or does a wrapper clear LD_PRELOAD? Without a "
          "GPU: --emulate.");
      break;
    default:
      break;
  }
  return out;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() &&
        word.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") ==
            word.npos;
    out += (out.empty() ? "" : " ") + (plain ? word : shell_quoted(word));
  }
  return out;
}

std::string production_line(const TrialPlan& plan, const std::vector<std::string>& command) {
  const auto part = plan.recommended();
  if (!part) return "";
  const std::string enable = plan.enable_of(*part);
  const std::string flag = enable == "default" ? "" : "--enable " + enable + " ";
  return fmt::format("sealane run {}-- {}", flag, shell_words(command));
}

json trial_json(const TrialPlan& plan, const std::vector<std::string>& command, const json& runs,
                const ObservedPage& observed, const json& machine) {
  json checks = json::array();
  for (const auto& one : observed.checks) {
    checks.push_back({{"mark", one.mark}, {"what", one.what}, {"found", one.found}});
  }
  return {{"kind", "trial"},
          {"version", SEALANE_VERSION},
          {"program", std::filesystem::path(command[0]).filename().string()},
          {"command", command},
          {"verdict", to_string(plan.verdict())},
          {"headline", headline(plan)},
          {"advice", advice(plan)},
          {"production", production_line(plan, command)},
          {"plain", times_json(plan.plain_times())},
          {"parts", parts_json(plan)},
          {"driver", checks},
          {"driver_verdict", observed.verdict},
          {"machine", machine},
          {"runs", runs}};
}

}  // namespace sealane::cli
