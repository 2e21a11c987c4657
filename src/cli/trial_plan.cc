// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "bench/interleave.h"

namespace sealane::cli {
namespace {

constexpr size_t kAlone = 2;    // runs
constexpr size_t kControl = 2;  // runs

constexpr double kPatienceAlone_s = 3600;
constexpr double kPatienceLeast_s = 60;
constexpr double kPatience = 5;  // times as long as alone

// Two ratios nearer than this are the same to us.
constexpr double kNoise = 0.03;

double median(const std::vector<double>& values) { return bench::summarize(values).median; }

TrialTimes summed_up(const std::vector<double>& seconds, const std::vector<double>& ratios) {
  if (seconds.empty() || ratios.empty()) return {};
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return {seconds.size(), median(seconds), median(ratios), *least, *most};
}

}  // namespace

const std::vector<TrialPart>& trial_parts() {
  static const std::vector<TrialPart> all = {
      {"engine", "engine", nullptr},
      {"parallel", "engine,parallel", nullptr},
      {"async", "engine,parallel,async", "async"},
      {"coalesce", "engine,parallel,async,coalesce", "async,coalesce"},
      {"register", "engine,parallel,async,coalesce,register", "async,coalesce,register"},
      {"default", "default", nullptr},
  };
  return all;
}

const char* to_string(TrialVerdict verdict) {
  constexpr const char* kWords[] = {
      "unfinished",       "fine",          "limited",       "part_breaks",   "observe_breaks",
      "not_reproducible", "program_fails", "program_hangs", "machine_unfit", "gpu_unused",
      "not_confidential"};
  return kWords[static_cast<size_t>(verdict)];
}

std::string name_of(const TrialStep& step) {
  constexpr const char* kWords[] = {"doctor", "alone", "observe", "engine-verify",
                                    "plain",  "",      "control"};
  const bool part = step.kind == StepKind::part;
  const char* word = part ? trial_parts()[step.part].name : kWords[static_cast<size_t>(step.kind)];
  const bool once = step.kind == StepKind::doctor || step.kind == StepKind::observe ||
                    step.kind == StepKind::verify;
  return once ? word : fmt::format("{}-{}", word, step.round);
}

std::optional<TrialStep> TrialPlan::next() const {
  if (over()) return std::nullopt;
  return step_;
}

void TrialPlan::finish(TrialVerdict verdict, const TrialOutcome* outcome) {
  verdict_ = verdict;
  if (outcome == nullptr) return;
  broken_ = step_;
  broken_outcome_ = *outcome;
}

bool TrialPlan::like_the_first(const TrialOutcome& outcome) const {
  const bool ended = outcome.ending == Ending::done || outcome.ending == Ending::failed;
  return ended && outcome.code == first_code_ && outcome.output == first_output_;
}

void TrialPlan::handle(const TrialOutcome& outcome) {
  SEALANE_CHECK(!over(), "the trial is over");
  ++runs_done_;
  switch (step_.kind) {
    case StepKind::doctor:
      if (outcome.ending != Ending::done) return finish(TrialVerdict::machine_unfit, &outcome);
      step_ = {StepKind::alone, 0, 1};
      return;
    case StepKind::alone:
      return handle_alone(outcome);
    case StepKind::observe:
      return handle_observe(outcome);
    case StepKind::verify:
    case StepKind::part:
      return handle_part(outcome);
    case StepKind::plain:
      timed_.push_back({step_, outcome.seconds});
      [[fallthrough]];
    case StepKind::control:
      return handle_control(outcome);
  }
}

void TrialPlan::handle_alone(const TrialOutcome& outcome) {
  alone_s_ = std::max(alone_s_, outcome.seconds);
  if (outcome.ending == Ending::hung) return finish(TrialVerdict::program_hangs, &outcome);
  if (outcome.ending != Ending::done) return finish(TrialVerdict::program_fails, &outcome);
  if (step_.round == 1) {
    first_output_ = outcome.output;
    first_code_ = outcome.code;
  } else if (!like_the_first(outcome)) {
    return finish(TrialVerdict::not_reproducible, &outcome);
  }
  step_ = step_.round < kAlone ? TrialStep{StepKind::alone, 0, step_.round + 1}
                               : TrialStep{StepKind::observe, 0, 0};
}

void TrialPlan::handle_observe(const TrialOutcome& outcome) {
  if (!like_the_first(outcome)) {
    broken_ = step_;
    broken_outcome_ = outcome;
    step_ = {StepKind::control, 0, 1};
    return;
  }
  if (!outcome.confidential) return finish(TrialVerdict::not_confidential);
  if (!outcome.page) return finish(TrialVerdict::gpu_unused);
  sight_ = outcome.sight;
  step_ = sight_ == Sight::nothing ? TrialStep{StepKind::plain, 0, 1}
                                   : TrialStep{StepKind::verify, 0, 0};
}

void TrialPlan::handle_part(const TrialOutcome& outcome) {
  if (!like_the_first(outcome) || outcome.wrong_answer) {
    broken_ = step_;
    broken_outcome_ = outcome;
    if (outcome.wrong_answer) return finish(TrialVerdict::part_breaks);  // no doubt whose fault
    step_ = {StepKind::control, 0, 1};
    return;
  }
  if (step_.kind == StepKind::part) {
    timed_.push_back({step_, outcome.seconds});
    parts_good_ = std::max(parts_good_, step_.part + 1);
  }
  go_on();
}

// The plain program again: between the parts, or because one of them was not like it.
void TrialPlan::handle_control(const TrialOutcome& outcome) {
  const bool doubted = step_.kind == StepKind::control;
  if (!like_the_first(outcome)) {
    if (outcome.ending == Ending::hung) return finish(TrialVerdict::program_hangs, &outcome);
    const bool ended = outcome.ending == Ending::done;
    return finish(ended ? TrialVerdict::not_reproducible : TrialVerdict::program_fails, &outcome);
  }
  if (!doubted) return go_on();
  if (step_.round < kControl) {
    ++step_.round;
    return;
  }
  finish(broken_->kind == StepKind::observe ? TrialVerdict::observe_breaks
                                            : TrialVerdict::part_breaks);
}

void TrialPlan::go_on() {
  if (step_.kind == StepKind::verify) {
    step_ = {StepKind::plain, 0, 1};
    return;
  }
  const auto part = part_from(step_.kind == StepKind::plain ? 0 : step_.part + 1);
  if (part) {
    step_ = {StepKind::part, *part, step_.round};
  } else if (step_.round < limits_.rounds) {
    step_ = {StepKind::plain, 0, step_.round + 1};
  } else {
    finish(sight_ == Sight::nothing ? TrialVerdict::limited : TrialVerdict::fine);
  }
}

std::optional<size_t> TrialPlan::part_from(size_t part) const {
  while (part < trial_parts().size() && !tries(part)) ++part;
  if (part == trial_parts().size()) return std::nullopt;
  return part;
}

bool TrialPlan::tries(size_t part) const { return enable_of(part) != nullptr; }

const char* TrialPlan::enable_of(size_t part) const {
  const TrialPart& one = trial_parts()[part];
  return sight_ == Sight::nothing ? one.enable_unseen : one.enable;
}

bool TrialPlan::passed(size_t part) const {
  if (broken_ && broken_->kind == StepKind::part && broken_->part == part) return false;
  return part < parts_good_ && tries(part);
}

std::optional<double> TrialPlan::plain_of(size_t round) const {
  for (const Timed& one : timed_) {
    if (one.step.kind == StepKind::plain && one.step.round == round) return one.seconds;
  }
  return std::nullopt;
}

TrialTimes TrialPlan::plain_times() const {
  std::vector<double> seconds;
  for (const Timed& one : timed_) {
    if (one.step.kind == StepKind::plain) seconds.push_back(one.seconds);
  }
  if (seconds.empty()) return {};
  const double middle = std::max(median(seconds), 1e-9);
  std::vector<double> ratios;
  for (const double one : seconds) ratios.push_back(one / middle);
  return summed_up(seconds, ratios);
}

TrialTimes TrialPlan::times_of(size_t part) const {
  std::vector<double> seconds;
  std::vector<double> ratios;
  for (const Timed& one : timed_) {
    if (one.step.kind != StepKind::part || one.step.part != part) continue;
    seconds.push_back(one.seconds);
    ratios.push_back(one.seconds / std::max(plain_of(one.step.round).value_or(0), 1e-9));
  }
  return summed_up(seconds, ratios);
}

// The last that passed, unless an earlier one was clearly faster: usually as fast as this one never
// was. The least of many medians is the luckiest, not the best.
std::optional<size_t> TrialPlan::recommended() const {
  std::optional<size_t> best;
  for (size_t part = 0; part < parts_good_; ++part) {
    if (!passed(part)) continue;
    if (best) {
      const double best_so_far = times_of(*best).ratio;
      const TrialTimes times = times_of(part);
      const bool slower = times.ratio > best_so_far + kNoise && times.least > best_so_far;
      if (slower) continue;
    }
    best = part;
  }
  return best;
}

double TrialPlan::expected_s() const {
  const double plain = plain_times().seconds;
  return plain > 0 ? plain : alone_s_;
}

size_t TrialPlan::runs_left() const {
  if (over()) return 0;
  size_t parts = 0;
  for (size_t part = 0; part < trial_parts().size(); ++part) parts += tries(part) ? 1 : 0;
  const size_t round = parts + 1;
  const size_t rounds = round * limits_.rounds;
  const size_t verify = sight_ == Sight::nothing ? 0 : 1;
  switch (step_.kind) {
    case StepKind::doctor:
      return 1 + kAlone + 1 + verify + rounds;
    case StepKind::alone:
      return kAlone - step_.round + 1 + 1 + verify + rounds;
    case StepKind::observe:
      return 1 + verify + rounds;
    case StepKind::verify:
      return 1 + rounds;
    case StepKind::plain:
      return (limits_.rounds - step_.round + 1) * round;
    case StepKind::part: {
      size_t rest = 0;
      for (size_t part = step_.part; part < trial_parts().size(); ++part) {
        rest += tries(part) ? 1 : 0;
      }
      return rest + (limits_.rounds - step_.round) * round;
    }
    case StepKind::control:
      return kControl - step_.round + 1;
  }
  return 0;
}

double TrialPlan::seconds_left() const { return static_cast<double>(runs_left()) * expected_s(); }

double TrialPlan::limit_s() const {
  if (step_.kind == StepKind::doctor) return kPatienceLeast_s * kPatience;
  if (limits_.limit_s > 0) return limits_.limit_s;
  if (step_.kind == StepKind::alone) return kPatienceAlone_s;
  return kPatienceLeast_s + kPatience * alone_s_;
}

}  // namespace sealane::cli
