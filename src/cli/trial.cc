// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane trial: the first run of a program under Sealane, done by the machine (docs/trial.md).
// What is run next and what follows from it says TrialPlan; here it is run, written down and shown.
//
// Every run is written down when it has ended, so that an interrupted trial goes on where it was.

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/figures.h"
#include "base/output_file.h"
#include "base/text.h"
#include "base/try.h"
#include "bench/scratch.h"
#include "cli/command.h"
#include "cli/program_file.h"
#include "cli/progress.h"
#include "cli/trial_bundle.h"
#include "cli/trial_directory.h"
#include "cli/trial_findings.h"
#include "cli/trial_mask.h"
#include "cli/trial_plan.h"
#include "cli/trial_run.h"
#include "cli/trial_text.h"
#include "core/session/sha256.h"
#include "report/output.h"
#include "report/trial_page.h"

namespace sealane::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kTextMax = 64 << 20;               // of a program's output, at a time
constexpr int kDepthMax = 64;                       // of lists in lists
constexpr const char* kVerifiedAnswers = "100000";  // by the engine's first run

struct TrialFlags {
  RunOptions options;
  std::string directory = "sealane-trial";
  std::string json_path;
  std::vector<std::string> masks;
  std::vector<std::string> files;
  bool no_usual_masks = false;
  bool ignore_stdout = false;
  bool resume = false;
  uint64_t rounds = 3;
  double limit_s = 0;
  std::vector<std::string> command;
};

void read_on(std::ifstream& file, std::string& text) {
  std::array<char, 1 << 16> piece;
  while (text.size() < kTextMax && (file.read(piece.data(), piece.size()), file.gcount() > 0)) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
  }
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  read_on(file, text);
  return text;
}

// Discarded, if it is none, or so deep that whoever walks through it would come to no end of his
// stack: statistics are written where the program could write something else.
json read_json(const std::string& path) {
  bool deep = false;
  const auto bounded = [&](int depth, json::parse_event_t, json&) {
    deep = deep || depth > kDepthMax;
    return !deep;
  };
  json value = json::parse(read_text(path), bounded, false);
  return deep ? json(json::value_t::discarded) : value;
}

std::string text_of(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

// What makes two trials the same: outcomes of one may be used by the other.
json settings_of(const TrialFlags& flags, const Environment& plain) {
  json variables = json::object();
  for (const auto& [name, value] : plain) variables[name] = value;
  return with_valid_text({{"command", flags.command},
                          {"masks", flags.masks},
                          {"compare", flags.files},
                          {"usual_masks", !flags.no_usual_masks},
                          {"stdout", !flags.ignore_stdout},
                          {"rounds", flags.rounds},
                          {"environment", variables}});
}

// Of a program's stdout what is compared: the beginning for people, and all of it.
struct MaskedOutput {
  std::string begin;
  std::string fingerprint;
};

// A trial under way: its directory, what was run so far, and what comes next.
class Trial {
 public:
  Trial(const TrialFlags& flags, Masks masks, json settings, TrialDirectory directory)
      : flags_(flags),
        masks_(std::move(masks)),
        settings_(std::move(settings)),
        place_(std::move(directory)),
        directory_(place_.path()),
        plan_({.rounds = flags.rounds, .limit_s = flags.limit_s}) {}

  Status open();      // with nothing done, or (--resume) what was written down
  Status run_all();   // until it is over
  Status conclude();  // the pages and the bundle
  bool convincing() const {
    return plan_.verdict() == TrialVerdict::fine || plan_.verdict() == TrialVerdict::limited;
  }

 private:
  std::string file(const TrialStep& step, const char* name) const {
    return fmt::format("{}/runs/{}/{}", directory_, name_of(step), name);
  }
  Result<MaskedOutput> masked_output(const TrialStep& step) const;
  Status resume();
  Result<TrialRun> prepared(const TrialStep& step) const;
  Result<TrialOutcome> run(const TrialStep& step);
  Status judge(const TrialStep& step, const std::vector<WatchedFile>& files, TrialOutcome& outcome);
  void show(const TrialStep& step, double elapsed_s) const;
  json findings() const;
  Status write_down() const { return place_.write("trial.json", text_of(findings())); }

  const TrialFlags& flags_;
  Masks masks_;
  json settings_;
  TrialDirectory place_;
  std::string directory_;  // its path
  TrialPlan plan_;
  json runs_ = json::array();
  std::string first_fingerprint_;
  Progress progress_;
};

Status Trial::open() { return flags_.resume ? resume() : write_down(); }

Status Trial::resume() {
  const std::string path = directory_ + "/trial.json";
  const json before = read_json(path);
  if (before.is_discarded() || !before.contains("runs") || !before.contains("settings")) {
    return usage_error(fmt::format("--resume: no trial was begun in {}", flags_.directory));
  }
  if (before["settings"] != settings_) {
    return usage_error(
        "--resume: that trial was begun with another program or other flags; name another "
        "directory with -o");
  }
  const Error changed = usage_error(fmt::format("--resume: {} was changed since", path));
  if (!before["runs"].is_array()) return changed;
  for (const json& run : before["runs"]) {
    const auto outcome = outcome_from(run);
    const auto step = plan_.next();
    // at(): what has an outcome is an object; its name may still be anything.
    if (!outcome || !step || !run.contains("name") || run.at("name") != name_of(*step)) {
      return changed;
    }
    if (step->kind == StepKind::alone && step->round == 1) first_fingerprint_ = outcome->output;
    plan_.handle(*outcome);
    runs_.push_back(run);
  }
  return {};
}

// Whole lines at a time, if they are not longer than that.
Result<MaskedOutput> Trial::masked_output(const TrialStep& step) const {
  MaskedOutput out;
  Sha256 hash;
  std::ifstream file(this->file(step, "out"), std::ios::binary);
  size_t lines = 0;
  for (std::string text; !flags_.ignore_stdout && file.good();) {
    read_on(file, text);
    const size_t last = text.rfind('\n');
    const size_t end = file.good() && last != text.npos ? last + 1 : text.size();
    std::string rest = text.substr(end);
    text.resize(end);
    SEALANE_LET(std::string masked, apply_within_limit(masks_, text, lines));
    hash.add(as_bytes(masked));
    if (out.begin.empty()) out.begin = std::move(masked);
    lines += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    text = std::move(rest);
  }
  out.fingerprint = hash.text();
  return out;
}

Result<TrialRun> Trial::prepared(const TrialStep& step) const {
  RunOptions options = flags_.options;
  options.quiet = true;
  TrialRun run{.command = flags_.command, .environment = {}, .limit_s = plan_.limit_s()};
  switch (step.kind) {
    case StepKind::doctor:
      run.command = {"/proc/self/exe", "doctor", "--json", file(step, "doctor.json")};
      [[fallthrough]];
    case StepKind::alone:
    case StepKind::plain:
    case StepKind::control:
      if (!options.emulate) return run;  // exactly as it is
      break;
    case StepKind::observe:
      options.observe = true;
      options.quiet = false;  // whether CC mode is on is said there
      options.stats = file(step, "stats.json");
      break;
    case StepKind::verify:
      options.set("SEALANE_VERIFY", kVerifiedAnswers);
      options.enable = plan_.enable_of(0);
      options.stats = file(step, "stats.json");
      break;
    case StepKind::part:
      options.enable = plan_.enable_of(step.part);
      options.stats = file(step, "stats.json");
      break;
  }
  SEALANE_LET(run.environment, environment_for(options));
  return run;
}

Result<TrialOutcome> Trial::run(const TrialStep& step) {
  SEALANE_LET(auto prepared, this->prepared(step));
  SEALANE_LET(const auto place, place_.make_run(name_of(step)));
  SEALANE_LET(const auto out, new_file(place, "out"));
  SEALANE_LET(const auto err, new_file(place, "err"));
  prepared.out = out.get();
  prepared.err = err.get();
  std::vector<WatchedFile> files;
  for (const std::string& path : flags_.files) files.emplace_back(path);
  const auto end = run_for_trial(prepared, [&](double elapsed_s) { show(step, elapsed_s); });
  if (!end) return end.error();
  TrialOutcome outcome;
  outcome.ending = end->ending;
  outcome.code = end->code;
  outcome.seconds = end->seconds;
  if (step.kind != StepKind::doctor) {
    SEALANE_TRY(judge(step, files, outcome));
  }
  return outcome;
}

Status Trial::judge(const TrialStep& step, const std::vector<WatchedFile>& files,
                    TrialOutcome& outcome) {
  SEALANE_LET(const MaskedOutput out, masked_output(step));
  outcome.output = "stdout=" + out.fingerprint;
  std::string changed;
  for (const WatchedFile& one : files) {
    const std::string word = fmt::format(" {}={}", one.path(), one.fingerprint());
    if (changed.empty() && first_fingerprint_.find(word) == std::string::npos) {
      changed = fmt::format("{} is {}", one.path(),
                            word.ends_with("=unwritten") ? "not written"
                            : word.ends_with("=missing") ? "missing"
                                                         : "another one");
    }
    outcome.output += word;
    // Everything is kept, as far as it can be, and apart from what is ours.
    std::error_code ignored;
    const fs::path files_kept = file(step, "files");
    fs::create_directory(files_kept, ignored);
    if (fs::file_size(one.path(), ignored) <= kTextMax) {
      fs::copy_file(one.path(), files_kept / fs::path(one.path()).filename(), ignored);
    }
  }
  const std::string errors = read_text(file(step, "err"));
  outcome.said = lines_of_sealane(errors);
  outcome.wrong_answer =
      std::any_of(outcome.said.begin(), outcome.said.end(), &tells_of_wrong_answer);
  if (step.kind == StepKind::observe) {
    const ObservedPage page = read_observed(read_json(file(step, "stats.json")));
    outcome.page = page.there;
    outcome.confidential = !says_not_confidential(errors);
    outcome.sight = page.sight;
  }
  if (step.kind == StepKind::alone && step.round == 1) {
    first_fingerprint_ = outcome.output;
  } else if (outcome.output != first_fingerprint_) {
    SEALANE_LET(const MaskedOutput first, masked_output({StepKind::alone, 0, 1}));
    outcome.difference = first_difference(first.begin, out.begin);
    if (outcome.difference.empty() && first.fingerprint != out.fingerprint) {
      outcome.difference = "stdout differs behind its first 64 MiB";
    }
    if (outcome.difference.empty()) outcome.difference = changed;
  }
  return {};
}

void Trial::show(const TrialStep& step, double elapsed_s) const {
  if (!progress_.watched()) return;
  const size_t done = plan_.runs_done();
  const double left_s = std::max(plan_.seconds_left() - elapsed_s, 0.0);
  const std::string left =
      left_s <= 0 ? "" : fmt::format(", about {} left", time_text(std::max(left_s, 1.0)));
  progress_.show(fmt::format("{} {} ({:.0f} s){}", progress_bar(done, done + plan_.runs_left()),
                             name_of(step), elapsed_s, left));
}

Status Trial::run_all() {
  while (const auto step = plan_.next()) {
    const auto outcome = run(*step);
    if (!outcome) {
      if (outcome.error().message != "interrupted") return outcome.error();
      progress_.show("");
      return io_error(fmt::format("interrupted after {} runs; the same line with --resume goes on",
                                  plan_.runs_done()));
    }
    plan_.handle(*outcome);
    runs_.push_back(to_json(*step, *outcome));
    SEALANE_TRY(write_down());
  }
  return {};
}

json Trial::findings() const {
  const ObservedPage observed =
      read_observed(read_json(file({StepKind::observe, 0, 0}, "stats.json")));
  const json doctor = read_json(file({}, "doctor.json"));
  const json machine = doctor.is_object() ? doctor.value("checks", json::array()) : json::array();
  json all = trial_json(plan_, flags_.command, runs_, observed, machine);
  all["settings"] = settings_;
  return all;
}

Private private_names(const TrialFlags& flags) {
  Private names;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) names.host = host.data();
  if (const passwd* user = getpwuid(getuid())) names.user = user->pw_name;
  names.words.assign(flags.command.begin() + 1, flags.command.end());
  names.words.insert(names.words.end(), flags.files.begin(), flags.files.end());
  return names;
}

Status Trial::conclude() {
  json all = findings();
  const json observed = read_json(file({StepKind::observe, 0, 0}, "stats.json"));
  TrialRecords records{read_json(file({}, "doctor.json")), read_observed(observed), {}};
  // What comes after the first round is for the times.
  std::vector<TrialStep> watched = {{StepKind::observe, 0, 0}, {StepKind::verify, 0, 0}};
  for (size_t i = 0; i < trial_parts().size(); ++i) watched.push_back({StepKind::part, i, 1});
  for (const TrialStep& step : watched) {
    records.statistics.emplace_back(name_of(step), read_json(file(step, "stats.json")));
  }
  const auto members = trial_bundle(all, records, private_names(flags_));
  SEALANE_TRY(place_.write("bundle.tar", tar_of(members)));
  all["bundle_file"] = flags_.directory + "/bundle.tar";
  for (const TarMember& one : members)
    all["bundle"].push_back({{"file", one.name}, {"what", one.what}});
  all = with_valid_text(all);  // names and differences may be any bytes; a page is UTF-8
  const std::string text = report::trial_text(all);
  SEALANE_TRY(place_.write("report.txt", text));
  SEALANE_TRY(place_.write("report.html", report::trial_html(all)));
  SEALANE_TRY(place_.write("trial.json", text_of(all)));
  progress_.show("");
  const std::string places =
      fmt::format("\nThe page: {0}/report.html. Everything that was run: {0}/runs\n",
                  visible(flags_.directory));
  return report::write_results(text + places, flags_.json_path, all);
}

// And what is compared, whether it is there yet or not.
std::vector<std::string> inputs_of(const TrialFlags& flags, const std::string& program) {
  std::vector<std::string> inputs = files_read_by(flags.options, program, flags.command);
  inputs.insert(inputs.end(), flags.files.begin(), flags.files.end());
  return inputs;
}

// A pipe would be read for ever.
Status check_compared(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code ignored;
    const fs::file_type type = fs::status(file, ignored).type();
    if (type == fs::file_type::regular || type == fs::file_type::not_found) continue;
    return usage_error(
        fmt::format("--compare: {} is no ordinary file, so it cannot be compared", visible(file)));
  }
  return {};
}

// Which is made before --json is written, with all it is in; what is in it is read again.
Status check_directory(const TrialFlags& flags) {
  std::error_code ignored;
  fs::path made = fs::absolute(flags.directory, ignored);
  for (; made.has_relative_path(); made = made.parent_path()) {
    if (flags.json_path.empty() || !is_same_file(flags.json_path, made.string())) continue;
    return usage_error(fmt::format("--json: {} is the directory of the trial, or the one it is in",
                                   visible(flags.json_path)));
  }
  if (flags.json_path.empty() || flags.json_path == "-") return {};
  const fs::path directory = fs::weakly_canonical(flags.directory, ignored);
  fs::path in = fs::weakly_canonical(flags.json_path, ignored).parent_path();
  for (; in.has_relative_path(); in = in.parent_path()) {
    if (in != directory) continue;
    return usage_error(
        fmt::format("--json: {} is in the directory of the trial, which has the same "
                    "in trial.json: name another file",
                    visible(flags.json_path)));
  }
  return {};
}

// Every run has what this process has, so what would spoil them all is refused.
Status check_environment(RunOptions options) {
  options.enable = "default";  // a trial says by itself which parts are on
  SEALANE_TRY(take_from_environment(options));
  if (options.disabled) {
    return usage_error(
        "SEALANE_DISABLE is set, so the runtime would do nothing in any run: unset it");
  }
  for (const OutputVariable& one : kOutputVariables) {
    if ((options.*one.file).empty()) continue;
    return usage_error(fmt::format("{} is set, so every run would write it: unset it", one.name));
  }
  if (!inherits_runtime()) return {};
  return usage_error(
      "LD_PRELOAD has the runtime in it, so the program would run without Sealane in no run: take "
      "it out");
}

Status check_flags(TrialFlags& flags) {
  if (flags.command.empty()) {
    return usage_error("a program is needed: sealane trial [--emulate] -- PROGRAM [ARGUMENT...]");
  }
  if (flags.ignore_stdout && flags.files.empty()) {
    return usage_error("--ignore-stdout leaves nothing to compare: add --compare FILE");
  }
  if (!flags.options.truth.empty()) {
    return usage_error("--truth: every run would write it; use `sealane run`");
  }
  SEALANE_TRY(check(flags.options));
  SEALANE_TRY(check_kernels(flags.options));
  SEALANE_TRY(check_environment(flags.options));
  SEALANE_TRY(check_compared(flags.files));
  SEALANE_TRY(check_directory(flags));
  SEALANE_LET(const auto program, find_program(flags.command[0]));
  return report::check_outputs({{"--json", flags.json_path}}, inputs_of(flags, program));
}

Status try_program(TrialFlags& flags) {
  SEALANE_TRY(check_flags(flags));
  SEALANE_LET(auto masks, Masks::make(!flags.no_usual_masks, flags.masks));
  Environment plain;
  if (flags.options.emulate) {
    SEALANE_LET(plain, environment_for(flags.options));
  }
  const bench::Scratch held;  // signals wait until a run has been ended
  SEALANE_LET(auto directory, flags.resume ? TrialDirectory::resume(flags.directory)
                                           : TrialDirectory::begin(flags.directory));
  Trial trial(flags, std::move(masks), settings_of(flags, plain), std::move(directory));
  SEALANE_TRY(trial.open());
  if (Status status = trial.run_all(); !status) {
    // The signal ends this process once `held` is gone; fputs, because nobody may read stderr.
    if (bench::interrupted()) {
      std::fputs(fmt::format("sealane: {}\n", status.error().message).c_str(), stderr);
    }
    return status;
  }
  SEALANE_TRY(trial.conclude());
  if (trial.convincing()) return {};
  return io_error("the trial did not go through; what was found is above");
}

}  // namespace

void add_trial(const Command& root) {
  const auto [command, flags] = add_command<TrialFlags>(
      root, "trial", "Try a CUDA program under Sealane, part by part", &try_program);
  command.value("-o,--output", flags.directory, "DIR", "Where all of it goes [sealane-trial]",
                &check_output_name);
  command.output("--json", flags.json_path, "Also write the findings as JSON; - is stdout");
  command.flag("--resume", flags.resume, "Go on with the trial in that directory");
  command.value("--rounds", flags.rounds, "N", "How often each part is timed [3]",
                whole_number(1, 1000));
  command.value("--limit", flags.limit_s, "SECONDS",
                "Seconds after which a run counts as hung [an hour; then by what it took alone]",
                real_number(0.001, 1e6));
  command.value("--mask", flags.masks, "REGEX",
                "What may differ in stdout, besides times, rates, dates and addresses");
  command.flag("--no-usual-masks", flags.no_usual_masks, "Only what --mask says may differ");
  command.value("--compare", flags.files, "FILE", "A file the program writes, compared too");
  command.flag("--ignore-stdout", flags.ignore_stdout, "Compare only files and exit codes");
  add_emulator_options(command, flags.options);
  command.value(kProgramOption, flags.command, "PROGRAM",
                "The program and its arguments, after --");
  command.footer(
      "Examples:\n"
      "  sealane trial -- python3 generate.py --seed 1\n"
      "  sealane trial --compare out.safetensors -o trial-1 -- ./train\n"
      "  sealane trial --emulate -- ./program         without a GPU\n"
      "\n"
      "Exit status: 0 every part that can be used here works, 1 not so or nothing could\n"
      "be tried, 2 wrong usage. docs/trial.md.");
}

}  // namespace sealane::cli
