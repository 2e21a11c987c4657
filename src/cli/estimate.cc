// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane estimate: what a workload, or a recorded run, will cost under each policy on a platform,
// before anybody pays for it.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "base/try.h"
#include "cli/command.h"
#include "cli/estimate_flags.h"
#include "cli/estimate_report.h"
#include "cli/progress.h"
#include "estimate/timeline.h"
#include "platform/reader.h"
#include "platform/writer.h"
#include "report/output.h"
#include "workload/nsys.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

constexpr uint32_t kWorkers = 8;
constexpr size_t kTimelineSpans = 120'000;
constexpr const char* kDdp = "ddp";

const std::vector<std::string> kUsual{"off", "stock", "parallel", "pipellm", "sealane"};

// What is read must not be written.
std::vector<std::string> inputs_of(const EstimateFlags& flags) {
  std::vector<std::string> inputs;
  for (const std::string& path : flags.traces) {
    inputs.push_back(path);
    if (!workload::is_nsys(path)) continue;
    for (std::string& file : workload::nsys_files(path)) inputs.push_back(std::move(file));
  }
  inputs.push_back(file_of_choice(flags.platform));
  if (flags.list) {
    for (const std::string& name : platform_names()) inputs.push_back(platform_file(name));
  }
  return inputs;
}

Status check_outputs(const EstimateFlags& flags) {
  return report::check_outputs(
      {{"--json", flags.json}, {"--trace", flags.trace}, {"--save-platform", flags.save_platform}},
      inputs_of(flags));
}

// Nothing is written before everything is known.
Status write(const EstimateFlags& flags, const Found& found, const std::string& trace = {}) {
  const std::string text = flags.trace == "-" ? "" : found.text;
  const Status shown = report::write_results(text, flags.json, found.json);
  if (!shown || flags.trace.empty()) return shown;
  return report::write_file(flags.trace, trace);
}

Status save_platform(const EstimateFlags& flags, const Platform& platform) {
  if (flags.save_platform.empty()) return {};
  return report::write_file(flags.save_platform, platform_text(platform));
}

// With --why: what the rows' `value` rests on.
template <typename Row>
Status find_why(const EstimateFlags& flags, const std::vector<Row>& rows, double Row::*value,
                const std::string& what, const std::vector<estimate::Unknown>& unknowns,
                Found& found) {
  if (!flags.why) return {};
  Why why{.policies = {}, .what = what, .leanings = {}};
  std::vector<double> predicted;
  for (const Row& row : rows) {
    why.policies.push_back(row.policy);
    predicted.push_back(row.*value);
  }
  const Progress progress;
  auto leanings = rests_on(predicted, unknowns, [&](const std::string& name) {
    progress.show("simulating with more and less of " + name);
  });
  if (!leanings) return leanings.error();
  why.leanings = *std::move(leanings);
  add_why(why, found);
  return {};
}

// --- serving and traces

// One core stays with the program.
uint32_t sealing_cores(const Platform& platform) {
  return static_cast<uint32_t>(std::max<uint64_t>(2, platform.host.cores) - 1);
}

Result<estimate::ServingPlan> make_plan(const EstimateFlags& flags, Platform platform) {
  SEALANE_LET(auto names,
              choose_policies(flags.policies, kUsual, estimate::serving_policy_names()));
  estimate::ServingPlan plan;
  for (const std::string& name : names) {
    plan.policies.push_back(*estimate::find_serving_policy(name));
  }
  plan.platform = std::move(platform);
  plan.workers =
      std::min(sealing_cores(plan.platform), flags.workers > 0 ? flags.workers : kWorkers);
  plan.seed = flags.serving.seed;
  plan.draws = flags.draws;
  plan.parts = true;
  plan.prices = flags.prices;
  plan.slot_bytes_max = flags.slot_bytes;
  if (!flags.trace.empty() || !flags.json.empty()) plan.timeline_spans = kTimelineSpans;
  return plan;
}

Found found_serving(const EstimateFlags& flags, const EstimateSubject& subject,
                    const estimate::ServingPlan& plan,
                    const std::vector<estimate::ServingRow>& rows) {
  Found found = serving_found(subject, plan.platform, rows);
  if (flags.prices.given()) add_prices(subject, flags.prices, rows, found);
  return found;
}

// With --fleet.
Status find_fleet(const EstimateFlags& flags, const estimate::ServingPlan& plan,
                  const estimate::MakeFeed& make, Found& found) {
  if (!flags.fleet) return {};
  const Progress progress;
  progress.show("simulating fewer and more cores for each GPU");
  SEALANE_LET(const auto fleet, estimate_fleet(plan, make, estimate::kFleetGoalPct));
  add_fleet(fleet, plan.platform, found);
  return {};
}

Status write_serving(const EstimateFlags& flags, const estimate::ServingPlan& plan,
                     const std::vector<estimate::ServingRow>& rows, const Found& found) {
  SEALANE_TRY(save_platform(flags, plan.platform));
  return write(flags, found, flags.trace.empty() ? "" : estimate::chrome_trace(rows));
}

Status estimate_workload(EstimateFlags& flags) {
  const workload::Serving* serving = workload::find_serving(flags.workload);
  if (serving == nullptr) {
    std::vector<std::string> names = names_of(workload::servings());
    names.emplace_back(kDdp);
    return unknown("workload", flags.workload, names);
  }
  const std::string name = flags.model.empty() ? std::string(serving->model) : flags.model;
  const workload::Model* model = workload::find_model(name);
  if (model == nullptr) return unknown("model", name, names_of(workload::models()));
  SEALANE_TRY(only_flags(flags, serving->name, serving->flags));
  SEALANE_LET(auto platform, choose_platform(flags.platform));
  SEALANE_LET(auto plan, make_plan(flags, std::move(platform)));
  plan.priced_units = priced_units(serving->unit);
  SEALANE_TRY(check_outputs(flags));

  const auto make = [&](const Platform& where, const estimate::Draw& draw) {
    return workload::make_serving(*serving, *model, estimate::roofline_of(where),
                                  drawn(flags.serving, draw));
  };
  SEALANE_TRY(make(plan.platform, {}));
  const estimate::MakeFeed feed = [&](const Platform& where, const estimate::Draw& draw) {
    return *make(where, draw);
  };
  Result<std::vector<estimate::ServingRow>> rows = std::vector<estimate::ServingRow>{};
  {
    const Progress progress;
    progress.show(fmt::format("simulating {} under {} policies, {} times", serving->name,
                              plan.policies.size(), 1 + plan.draws));
    rows = estimate_serving(plan, feed);
  }
  if (!rows) return rows.error();
  const EstimateSubject subject{std::string(serving->name),
                                name,
                                std::string(serving->unit),
                                plan.workers,
                                plan.seed,
                                given_flags(flags),
                                model->bytes()};
  const auto unknowns = serving_unknowns(
      plan, flags.serving, serving->flags,
      [&](const Platform& where, const workload::ServingOptions& options) {
        return *workload::make_serving(*serving, *model, estimate::roofline_of(where), options);
      });
  Found found = found_serving(flags, subject, plan, *rows);
  SEALANE_TRY(find_fleet(flags, plan, feed, found));
  const Status known =
      find_why(flags, *rows, &estimate::ServingRow::loss_pct, kLoss, unknowns, found);
  return known ? write_serving(flags, plan, *rows, found) : known;
}

Result<workload::Program> load(const std::string& path) {
  return workload::is_nsys(path) ? workload::load_nsys(path) : workload::load_trace(path);
}

Status estimate_traces(const EstimateFlags& flags) {
  if (!flags.model.empty()) return usage_error("--model means nothing to a trace");
  SEALANE_TRY(only_flags(flags, "a trace", ""));
  if (flags.traces.size() > 1 && (!flags.json.empty() || !flags.trace.empty())) {
    return usage_error("--json and --trace take one trace at a time");
  }
  if (flags.fleet) return usage_error("--fleet means nothing to a trace");
  std::vector<workload::Program> programs;
  for (const std::string& path : flags.traces) {
    SEALANE_LET(auto program, load(path));
    programs.push_back(std::move(program));
  }
  SEALANE_LET(auto platform, choose_platform(flags.platform));
  SEALANE_LET(const auto plan, make_plan(flags, std::move(platform)));
  SEALANE_TRY(check_outputs(flags));
  for (size_t i = 0; i < programs.size(); ++i) {
    SEALANE_LET(const auto rows, estimate_program(plan, programs[i]));
    const EstimateSubject subject{flags.traces[i], "", "", plan.workers, plan.seed};
    Found found = found_serving(flags, subject, plan, rows);
    if (i > 0) found.text.insert(found.text.begin(), '\n');
    SEALANE_TRY(find_why(flags, rows, &estimate::ServingRow::slowdown, kSlowdown,
                         program_unknowns(plan, programs[i]), found));
    SEALANE_TRY(write_serving(flags, plan, rows, found));
  }
  return {};
}

// --- training

Status estimate_training(EstimateFlags& flags) {
  const std::string name = flags.model.empty() ? "gpt2-xl" : flags.model;
  const workload::TrainingModel* model = workload::find_training_model(name);
  if (model == nullptr) return unknown("model", name, names_of(workload::training_models()));
  SEALANE_TRY(only_flags(flags, kDdp, ddp_flags()));
  SEALANE_TRY(complete_ddp(flags));
  if (!flags.trace.empty()) return usage_error("--trace means nothing to 'ddp'");
  if (flags.fleet) return usage_error("--fleet means nothing to 'ddp', which shows 1 to 1024 GPUs");
  const auto known = estimate::ddp_policies(flags.ddp.fabric);
  const std::vector<std::string> all(known.begin(), known.end());
  SEALANE_LET(const auto policies, choose_policies(flags.policies, all, all));
  SEALANE_LET(const auto platform, choose_platform(flags.platform));
  SEALANE_TRY(check_outputs(flags));

  // As many as the machine has, one of which stays with the program.
  flags.ddp.workers = std::min(flags.ddp.workers, sealing_cores(platform));
  SEALANE_LET(auto rows, estimate_ddp(*model, platform, flags.ddp, policies));
  DdpEstimate training{{kDdp, name, "samples/s", flags.ddp.workers, flags.serving.seed,
                        given_flags(flags), model->gradient_bytes()},
                       platform,
                       flags.ddp,
                       flags.ddp.batch > 0 ? flags.ddp.batch : model->batch,
                       std::move(rows),
                       {needed_seal_rate(*model, platform, flags.ddp, kDdpGoal),
                        needed_seal_rate_range(*model, platform, flags.ddp, kDdpGoal),
                        needed_workers(*model, platform, flags.ddp, kDdpGoal),
                        needed_workers_range(*model, platform, flags.ddp, kDdpGoal),
                        needed_bucket(*model, platform, flags.ddp, kDdpGoal)},
                       {}};
  const bool nccl = flags.ddp.fabric == estimate::Fabric::nccl;
  for (uint32_t count = 1; count <= 1024; count *= 2) {
    estimate::DdpOptions options = flags.ddp;
    options.gpus = nccl ? count * flags.ddp.gpus_per_machine : count;
    training.scaling.push_back({options.gpus, *estimate_ddp(*model, platform, options, policies)});
  }
  Found found = ddp_found(training);
  if (flags.prices.given()) add_prices(flags.prices, training, found);
  SEALANE_TRY(find_why(flags, training.rows, &estimate::DdpRow::slowdown, kSlowdown,
                       ddp_unknowns(*model, platform, flags.ddp, policies), found));
  SEALANE_TRY(save_platform(flags, platform));
  return write(flags, found);
}

Status estimate(EstimateFlags& flags) {
  if (flags.list) {
    if (!flags.trace.empty()) return usage_error("--trace means nothing to --list");
    SEALANE_TRY(check_outputs(flags));
    return write(flags, list_found());
  }
  if (!flags.workload.empty() && !flags.traces.empty()) {
    return usage_error("give a workload or traces, not both");
  }
  if (!flags.traces.empty()) return estimate_traces(flags);
  if (flags.workload.empty()) {
    return usage_error(
        "nothing to estimate: give --workload W or a trace; --list shows what there "
        "is");
  }
  return flags.workload == kDdp ? estimate_training(flags) : estimate_workload(flags);
}

}  // namespace

void add_estimate(const Command& root) {
  const auto [command, flags] = add_command<EstimateFlags>(
      root, "estimate",
      "What confidential mode costs a workload or a recorded run, under each policy", &estimate);
  declare(command, flags);
  command.footer(
      "Examples:\n"
      "  sealane estimate --list\n"
      "  sealane estimate --workload flexgen --model opt-66b --platform h100-sxm\n"
      "  sealane estimate --workload vllm --model opt-30b --samples 4 --json vllm.json\n"
      "  sealane estimate --workload decode --graphs none --platform b200-tdx --fleet\n"
      "  sealane estimate --workload ddp --model gpt2-xl --gpus 64\n"
      "  sealane estimate --workload ddp --fabric nccl --machines 128 --why\n"
      "  sealane estimate runs/training    Nsight CSV: runs/training_cuda_*_trace.csv\n"
      "Everything here is SIMULATED; docs/estimate.md says from what.");
}

}  // namespace sealane::cli
