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

#include "cli/byte_count.h"
#include "cli/command.h"
#include "cli/estimate_flags.h"
#include "cli/estimate_report.h"
#include "cli/progress.h"
#include "cli/suggest.h"
#include "estimate/timeline.h"
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

Status check_outputs(const EstimateFlags& flags) {
  for (const std::string& path : {flags.json, flags.trace}) {
    if (path.empty()) continue;
    if (Status status = report::check_writable(path); !status) return status;
  }
  if (flags.json == "-" && flags.trace == "-") {
    return usage_error("--json and --trace cannot both be written to stdout");
  }
  return {};
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

// --- serving and traces

Result<estimate::ServingPlan> make_plan(const EstimateFlags& flags, Platform platform) {
  auto names = choose_policies(flags.policies, kUsual, estimate::serving_policy_names());
  if (!names) return names.error();
  estimate::ServingPlan plan;
  for (const std::string& name : *names) {
    plan.policies.push_back(*estimate::find_serving_policy(name));
  }
  plan.platform = std::move(platform);
  // One core stays with the program.
  const uint64_t cores_most = std::max<uint64_t>(2, plan.platform.host.cores) - 1;
  plan.workers = static_cast<uint32_t>(
      std::min<uint64_t>(cores_most, flags.workers > 0 ? flags.workers : kWorkers));
  plan.seed = flags.serving.seed;
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
                      const std::vector<estimate::ServingRow>& rows) {
  return write(flags, serving_text(subject, plan.platform, rows),
               serving_json(subject, plan.platform, rows),
               flags.trace.empty() ? "" : estimate::chrome_trace(rows));
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
  if (Status status = check_outputs(flags); !status) return status;

  const workload::Roofline gpu = estimate::roofline_of(plan->platform);
  const auto make = [&] { return workload::make_serving(*serving, *model, gpu, flags.serving); };
  if (auto possible = make(); !possible) return possible.error();
  Result<std::vector<estimate::ServingRow>> rows = std::vector<estimate::ServingRow>{};
  {
    const Progress progress;
    progress.show(
        fmt::format("simulating {} under {} policies", serving->name, plan->policies.size()));
    rows = estimate_serving(*plan, [&] { return *make(); });
  }
  if (!rows) return rows.error();
  const EstimateSubject subject{std::string(serving->name),
                                name,
                                std::string(serving->unit),
                                plan->workers,
                                plan->seed,
                                given_flags(flags),
                                model->bytes()};
  return report_serving(flags, subject, *plan, *rows);
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
    if (Status status = report_serving(flags, subject, *plan, *rows); !status) return status;
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
  const auto known = estimate::ddp_policies();
  const std::vector<std::string> all(known.begin(), known.end());
  const auto policies = choose_policies(flags.policies, all, all);
  if (!policies) return policies.error();
  const auto platform = choose_platform(flags.platform);
  if (!platform) return platform.error();
  if (Status status = check_outputs(flags); !status) return status;

  const auto rows = estimate_ddp(*model, *platform, flags.ddp, *policies);
  if (!rows) return rows.error();
  const auto needed = needed_seal_rate(*model, *platform, flags.ddp, kDdpGoal);
  std::vector<DdpScale> scaling;
  for (uint32_t gpus = 1; gpus <= 1024; gpus *= 2) {
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
  const uint64_t batch = flags.ddp.batch > 0 ? flags.ddp.batch : model->batch;
  return write(flags, ddp_text(subject, *platform, flags.ddp, *rows, needed),
               ddp_json(subject, *platform, flags.ddp, batch, *rows, needed, scaling), "");
}

Status estimate(EstimateFlags& flags) {
  if (flags.list) return report::write_file("-", list_text());
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
      "  sealane estimate --workload ddp --model gpt2-xl --gpus 64\n"
      "  sealane estimate runs/training    Nsight CSV: runs/training_cuda_*_trace.csv\n"
      "Everything here is SIMULATED; docs/estimate.md says from what.");
  command->callback(
      [flags, &invocation] { invocation.job = [flags] { return estimate(*flags); }; });
}

}  // namespace sealane::cli
