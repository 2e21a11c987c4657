// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane estimate: what a workload, or a recorded run, will cost under each policy on a platform,
// before anybody pays for it.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_count.h"
#include "cli/command.h"
#include "cli/estimate_costs.h"
#include "cli/estimate_flags.h"
#include "cli/estimate_report.h"
#include "cli/estimate_why.h"
#include "cli/progress.h"
#include "cli/suggest.h"
#include "estimate/fleet.h"
#include "estimate/timeline.h"
#include "platform/writer.h"
#include "report/output.h"
#include "workload/nsys.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

constexpr uint32_t kWorkers = 8;
constexpr size_t kTimelineSpans = 120'000;
constexpr uint64_t kSlotsMost = uint64_t{1} << 40;
constexpr const char* kDdp = "ddp";

const std::vector<std::string> kUsual{"off", "stock", "parallel", "pipellm", "sealane"};

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.emplace_back(each.name);
  return names;
}

// What is read must not be written.
std::vector<std::string> inputs_of(const EstimateFlags& flags) {
  std::vector<std::string> inputs;
  for (const std::string& path : flags.traces) {
    inputs.push_back(path);
    if (!workload::is_nsys(path)) continue;
    for (std::string& file : workload::nsys_files(path)) inputs.push_back(std::move(file));
  }
  if (is_platform_file(flags.platform)) inputs.push_back(flags.platform);
  return inputs;
}

Status check_outputs(const EstimateFlags& flags) {
  std::vector<report::NamedFile> outputs;
  if (!flags.json.empty()) outputs.push_back({"--json", flags.json});
  if (!flags.trace.empty()) outputs.push_back({"--trace", flags.trace});
  if (!flags.save_platform.empty()) outputs.push_back({"--save-platform", flags.save_platform});
  return report::check_outputs(outputs, inputs_of(flags));
}

// Nothing is written before everything is known.
Status write(const EstimateFlags& flags, const std::string& text, const nlohmann::json& json,
             const std::string& trace) {
  if (flags.json != "-" && flags.trace != "-") {
    if (Status status = report::write_file("-", text); !status) return status;
  }
  if (!flags.json.empty()) {
    if (Status status = report::write_json(flags.json, json); !status) return status;
  }
  if (flags.trace.empty()) return {};
  return report::write_file(flags.trace, trace);
}

Status save_platform(const EstimateFlags& flags, const Platform& platform) {
  if (flags.save_platform.empty()) return {};
  return report::write_file(flags.save_platform, platform_text(platform));
}

// --- serving and traces

// One core stays with the program.
uint32_t sealing_cores(const Platform& platform) {
  return static_cast<uint32_t>(std::max<uint64_t>(2, platform.host.cores) - 1);
}

Result<estimate::ServingPlan> make_plan(const EstimateFlags& flags, Platform platform) {
  auto names = choose_policies(flags.policies, kUsual, estimate::serving_policy_names());
  if (!names) return names.error();
  estimate::ServingPlan plan;
  for (const std::string& name : *names) {
    plan.policies.push_back(*estimate::find_serving_policy(name));
  }
  plan.platform = std::move(platform);
  plan.workers =
      std::min(sealing_cores(plan.platform), flags.workers > 0 ? flags.workers : kWorkers);
  plan.seed = flags.serving.seed;
  plan.draws = flags.draws;
  plan.parts = true;
  plan.prices = flags.prices;
  if (!flags.slots.empty()) {
    const auto bytes = parse_byte_count(flags.slots, kSlotsMost);
    if (!bytes) return usage_error("--slots: " + bytes.error().message);
    plan.slot_bytes_max = *bytes;
  }
  if (!flags.trace.empty() || !flags.json.empty()) plan.timeline_spans = kTimelineSpans;
  return plan;
}

Status report_serving(const EstimateFlags& flags, const EstimateSubject& subject,
                      const estimate::ServingPlan& plan,
                      const std::vector<estimate::ServingRow>& rows, const Why* why,
                      const estimate::Fleet* fleet = nullptr) {
  std::string text = serving_text(subject, plan.platform, rows);
  nlohmann::json json = serving_json(subject, plan.platform, rows);
  if (flags.prices.given()) {
    text += price_text(subject, flags.prices, rows);
    json["prices"] = price_json(subject, flags.prices, rows);
  }
  if (fleet != nullptr) {
    text += fleet_text(*fleet, plan.platform);
    json["fleet"] = fleet_json(*fleet);
  }
  if (why != nullptr) {
    text += why_text(*why);
    json["rests_on"] = why_json(*why);
  }
  if (Status status = save_platform(flags, plan.platform); !status) return status;
  return write(flags, text, json, flags.trace.empty() ? "" : estimate::chrome_trace(rows));
}

// With --why: what the rows' `value` rests on.
template <typename Row>
Result<std::optional<Why>> find_why(const EstimateFlags& flags, const std::vector<Row>& rows,
                                    double Row::*value, const std::string& what,
                                    const std::vector<estimate::Unknown>& unknowns) {
  if (!flags.why) return std::optional<Why>{};
  Why why{.policies = {}, .what = what, .leanings = {}};
  std::vector<double> predicted;
  for (const Row& row : rows) {
    why.policies.push_back(row.policy);
    predicted.push_back(row.*value);
  }
  const Progress progress;
  auto found = rests_on(predicted, unknowns, [&](const std::string& name) {
    progress.show("simulating with more and less of " + name);
  });
  if (!found) return found.error();
  why.leanings = *std::move(found);
  return std::optional<Why>(std::move(why));
}

// With --fleet.
Result<std::optional<estimate::Fleet>> find_fleet(const EstimateFlags& flags,
                                                  const estimate::ServingPlan& plan,
                                                  const estimate::MakeFeed& make) {
  if (!flags.fleet) return std::optional<estimate::Fleet>{};
  const Progress progress;
  progress.show("simulating fewer and more cores for each GPU");
  auto fleet = estimate_fleet(plan, make, estimate::kFleetGoalPct);
  if (!fleet) return fleet.error();
  return std::optional<estimate::Fleet>(*std::move(fleet));
}

Status estimate_workload(EstimateFlags& flags) {
  const workload::Serving* serving = workload::find_serving(flags.workload);
  if (serving == nullptr) {
    std::vector<std::string> names = names_of(workload::servings());
    names.emplace_back(kDdp);
    return usage_error(fmt::format("--workload: unknown workload '{}'{}", flags.workload,
                                   did_you_mean(flags.workload, names)));
  }
  const std::string name = flags.model.empty() ? std::string(serving->model) : flags.model;
  const workload::Model* model = workload::find_model(name);
  if (model == nullptr) {
    return usage_error(fmt::format("--model: unknown model '{}'{}", name,
                                   did_you_mean(name, names_of(workload::models()))));
  }
  if (Status status = only_flags(flags, serving->name, serving->flags); !status) return status;
  if (Status status = complete_serving(flags); !status) return status;
  auto platform = choose_platform(flags.platform);
  if (!platform) return platform.error();
  auto plan = make_plan(flags, *std::move(platform));
  if (!plan) return plan.error();
  plan->priced_units = priced_units(serving->unit);
  if (Status status = check_outputs(flags); !status) return status;

  const auto make = [&](const Platform& where, const estimate::Draw& draw) {
    return workload::make_serving(*serving, *model, estimate::roofline_of(where),
                                  drawn(flags.serving, draw));
  };
  if (auto possible = make(plan->platform, {}); !possible) return possible.error();
  Result<std::vector<estimate::ServingRow>> rows = std::vector<estimate::ServingRow>{};
  {
    const Progress progress;
    progress.show(fmt::format("simulating {} under {} policies, {} times", serving->name,
                              plan->policies.size(), 1 + plan->draws));
    rows = estimate_serving(*plan, [&](const Platform& where, const estimate::Draw& draw) {
      return *make(where, draw);
    });
  }
  if (!rows) return rows.error();
  const EstimateSubject subject{std::string(serving->name),
                                name,
                                std::string(serving->unit),
                                plan->workers,
                                plan->seed,
                                given_flags(flags),
                                model->bytes()};
  const auto unknowns = serving_unknowns(
      *plan, flags.serving, serving->flags,
      [&](const Platform& where, const workload::ServingOptions& options) {
        return *workload::make_serving(*serving, *model, estimate::roofline_of(where), options);
      });
  const auto why = find_why(flags, *rows, &estimate::ServingRow::loss_pct, kLoss, unknowns);
  if (!why) return why.error();
  const auto fleet = find_fleet(
      flags, *plan,
      [&](const Platform& where, const estimate::Draw& draw) { return *make(where, draw); });
  if (!fleet) return fleet.error();
  return report_serving(flags, subject, *plan, *rows, *why ? &**why : nullptr,
                        *fleet ? &**fleet : nullptr);
}

Result<workload::Program> load(const std::string& path) {
  return workload::is_nsys(path) ? workload::load_nsys(path) : workload::load_trace(path);
}

Status estimate_traces(const EstimateFlags& flags) {
  if (!flags.model.empty()) return usage_error("--model means nothing to a trace");
  if (Status status = only_flags(flags, "a trace", ""); !status) return status;
  if (flags.traces.size() > 1 && (!flags.json.empty() || !flags.trace.empty())) {
    return usage_error("--json and --trace take one trace at a time");
  }
  if (flags.fleet) return usage_error("--fleet means nothing to a trace");
  std::vector<workload::Program> programs;
  for (const std::string& path : flags.traces) {
    auto program = load(path);
    if (!program) return program.error();
    programs.push_back(*std::move(program));
  }
  auto platform = choose_platform(flags.platform);
  if (!platform) return platform.error();
  const auto plan = make_plan(flags, *std::move(platform));
  if (!plan) return plan.error();
  if (Status status = check_outputs(flags); !status) return status;
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto rows = estimate_program(*plan, programs[i]);
    if (!rows) return rows.error();
    const EstimateSubject subject{flags.traces[i], "", "", plan->workers, plan->seed};
    if (i > 0) fmt::print("\n");
    const auto why = find_why(flags, *rows, &estimate::ServingRow::slowdown, kSlowdown,
                              program_unknowns(*plan, programs[i]));
    if (!why) return why.error();
    const Why* told = *why ? &**why : nullptr;
    if (Status status = report_serving(flags, subject, *plan, *rows, told); !status) return status;
  }
  return {};
}

// --- training

Status estimate_training(EstimateFlags& flags) {
  const std::string name = flags.model.empty() ? "gpt2-xl" : flags.model;
  const workload::TrainingModel* model = workload::find_training_model(name);
  if (model == nullptr) {
    return usage_error(fmt::format("--model: unknown model '{}'{}", name,
                                   did_you_mean(name, names_of(workload::training_models()))));
  }
  if (Status status = only_flags(flags, kDdp, ddp_flags()); !status) return status;
  if (Status status = complete_ddp(flags); !status) return status;
  if (!flags.trace.empty()) return usage_error("--trace means nothing to 'ddp'");
  if (flags.fleet) return usage_error("--fleet means nothing to 'ddp', which shows 1 to 1024 GPUs");
  const auto known = estimate::ddp_policies(flags.ddp.fabric);
  const std::vector<std::string> all(known.begin(), known.end());
  const auto policies = choose_policies(flags.policies, all, all);
  if (!policies) return policies.error();
  const auto platform = choose_platform(flags.platform);
  if (!platform) return platform.error();
  if (Status status = check_outputs(flags); !status) return status;

  // As many as the machine has, one of which stays with the program.
  flags.ddp.workers = std::min(flags.ddp.workers, sealing_cores(*platform));
  const auto rows = estimate_ddp(*model, *platform, flags.ddp, *policies);
  if (!rows) return rows.error();
  const bool nccl = flags.ddp.fabric == estimate::Fabric::nccl;
  const DdpNeeds needs{needed_seal_rate(*model, *platform, flags.ddp, kDdpGoal),
                       needed_seal_rate_range(*model, *platform, flags.ddp, kDdpGoal),
                       needed_workers(*model, *platform, flags.ddp, kDdpGoal),
                       needed_workers_range(*model, *platform, flags.ddp, kDdpGoal),
                       needed_bucket(*model, *platform, flags.ddp, kDdpGoal)};
  std::vector<DdpScale> scaling;
  for (uint32_t count = 1; count <= 1024; count *= 2) {
    const uint32_t gpus = nccl ? count * flags.ddp.gpus_per_machine : count;
    estimate::DdpOptions options = flags.ddp;
    options.gpus = gpus;
    scaling.push_back({gpus, *estimate_ddp(*model, *platform, options, *policies)});
  }
  const EstimateSubject subject{kDdp,
                                name,
                                "samples/s",
                                flags.ddp.workers,
                                flags.serving.seed,
                                given_flags(flags),
                                model->gradient_bytes()};
  const auto why = find_why(flags, *rows, &estimate::DdpRow::slowdown, kSlowdown,
                            ddp_unknowns(*model, *platform, flags.ddp, *policies));
  if (!why) return why.error();
  const uint64_t batch = flags.ddp.batch > 0 ? flags.ddp.batch : model->batch;
  std::string text = nccl ? nccl_text(subject, *platform, flags.ddp, *rows, needs, scaling)
                          : ddp_text(subject, *platform, flags.ddp, *rows, needs);
  nlohmann::json json = ddp_json(subject, *platform, flags.ddp, batch, *rows, needs, scaling);
  if (flags.prices.given()) {
    text += ddp_price_text(flags.prices, flags.ddp, *rows);
    json["prices"] = ddp_price_json(flags.prices, flags.ddp, *rows);
  }
  if (*why) {
    text += why_text(**why);
    json["rests_on"] = why_json(**why);
  }
  if (Status status = save_platform(flags, *platform); !status) return status;
  return write(flags, text, json, "");
}

Status estimate(EstimateFlags& flags) {
  if (flags.list) {
    if (!flags.trace.empty()) return usage_error("--trace means nothing to --list");
    if (Status status = check_outputs(flags); !status) return status;
    return write(flags, list_text(), list_json(), "");
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

void add_estimate(CLI::App& root, Invocation& invocation) {
  auto* command = root.add_subcommand(
      "estimate", "What confidential mode costs a workload or a recorded run, under each policy");
  auto flags = std::make_shared<EstimateFlags>();
  declare(*command, *flags);
  command->footer(
      "Examples:\n"
      "  sealane estimate --list\n"
      "  sealane estimate --workload flexgen --model opt-66b --platform h100-sxm\n"
      "  sealane estimate --workload vllm --model opt-30b --samples 4 --json vllm.json\n"
      "  sealane estimate --workload decode --graphs none --platform b200-tdx --fleet\n"
      "  sealane estimate --workload ddp --model gpt2-xl --gpus 64\n"
      "  sealane estimate --workload ddp --fabric nccl --machines 128 --why\n"
      "  sealane estimate runs/training    Nsight CSV: runs/training_cuda_*_trace.csv\n"
      "Everything here is SIMULATED; docs/estimate.md says from what.");
  run_with(*command, invocation, flags, &estimate);
}

}  // namespace sealane::cli
