// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench copy`: the examples on the emulated GPU without CC mode, with it as shipped, and
// with one part of the runtime after the other. Policies are interleaved: every round runs all of
// them, case by case (an example with a number of workers), in an order shuffled anew; figures are
// medians over rounds.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "bench/copy_report.h"
#include "bench/copy_rounds.h"
#include "bench/copy_trial.h"
#include "bench/engine_report.h"
#include "bench/scratch.h"
#include "cli/command.h"
#include "cli/copy_run.h"
#include "cli/progress.h"
#include "cli/run_environment.h"
#include "core/copy/copy_threads.h"
#include "platform/reader.h"
#include "report/output.h"
#include "sim/recorded.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::vector<std::string> examples;
  std::vector<std::string> policies;
  std::string examples_dir;
  std::string platform = "h100-tdx";
  std::string dilation;
  std::vector<std::string> workers;
  size_t rounds = 3;
  double seconds = 0;
  bool simulated = false;
  std::string json;
};

Result<std::vector<bench::CopyRow>> plan(const Flags& flags) {
  const auto examples = choose(bench::copy_examples(), flags.examples, "example");
  if (!examples) return examples.error();
  const auto policies = choose(bench::copy_policies(), flags.policies, "policy");
  if (!policies) return policies.error();
  const auto workers = flags.workers.empty() ? std::vector<std::string>{""} : flags.workers;
  std::vector<bench::CopyRow> rows;
  for (const bench::CopyExample* example : *examples) {
    for (const std::string& count : workers) {
      for (const bench::CopyPolicy* policy : *policies)
        rows.push_back({{example, count}, policy, {}});
    }
  }
  return rows;
}

// As `sealane run` would: by variables of the environment.
Result<bench::CopySetting::Entering> run_under(const bench::CopySetting& setting,
                                               const bench::CopyExample& example,
                                               const bench::CopyPolicy& policy,
                                               const bench::CopyFiles& files) {
  RunOptions options = copy_run(setting, example, policy, files);
  auto environment = copy_environment(options);
  if (!environment) return environment.error();
  return bench::CopySetting::Entering([variables = *std::move(environment)] { enter(variables); });
}

// ---- --simulated: each example is recorded once on the emulated GPU, without CC, and the part
// that it times runs in the simulated machine under every policy, on the same platform, with as
// many workers and the guards the runtime has there.

constexpr uint32_t kModelledThreads = 8;  // the runtime's own choice on the emulated GPU

struct RecordedExample {
  const bench::CopyExample* example = nullptr;
  workload::Program program;
  sim::TimedPart part;
};

Result<RecordedExample> record(const bench::CopyExample& example,
                               const bench::CopySetting& setting) {
  const auto run = bench::run_copy_example(example, bench::recording(), setting);
  if (!run) return run.error();
  auto program = workload::load_trace(bench::files_of(example, bench::recording(), setting).trace);
  if (!program) return program.error();
  const auto part = sim::find_timed_part(*program);
  if (!part) return internal_error(fmt::format("{} does not time itself", example.name));
  return RecordedExample{&example, *std::move(program), *part};
}

// Of pinned memory the runtime takes digests, unless it was asked for memory that can be guarded.
sim::Setup setup_for(const Platform& platform, const bench::CopyRow& row) {
  sim::Setup setup;
  setup.platform = platform;
  const uint32_t threads = row.what.workers.empty()
                               ? kModelledThreads
                               : static_cast<uint32_t>(std::stoul(row.what.workers));
  setup.workers = threads - 1;  // and the thread that carries
  setup.bulk_threads = kBulkThreads;
  setup.page_guards = false;
  for (const sim::PolicyStep& step : sim::policy_steps()) {
    if (step.name == row.policy->name) setup.policy = step.policy;
  }
  return setup;
}

// Fills in CopyRow::simulated_s.
Status simulate_copies(std::vector<bench::CopyRow>& rows, const bench::CopySetting& setting) {
  const auto platform = find_platform(setting.platform);
  if (!platform) return platform.error();
  RecordedExample recorded;
  for (bench::CopyRow& row : rows) {
    if (recorded.example != row.what.example) {
      auto made = record(*row.what.example, setting);
      if (!made) return made.error();
      recorded = *std::move(made);
    }
    const Duration time =
        sim::simulate_part(recorded.program, recorded.part, setup_for(*platform, row));
    row.simulated_s = static_cast<double>(time.count()) / 1e9;
  }
  return {};
}

Status bench_copy(const Flags& flags) {
  auto rows = plan(flags);
  if (!rows) return rows.error();
  std::string examples = flags.examples_dir;
  if (examples.empty()) {
    const auto found = directory_of("the examples", "layer_swap",
                                    {"examples", SEALANE_LIBDIR "/sealane/examples"});
    if (!found) return io_error(found.error().message + "; name them with --examples-dir");
    examples = *found;
  }
  std::vector<std::string> inputs = own_libraries();
  inputs.push_back(platform_file(flags.platform));
  for (const bench::CopyRow& row : *rows) {
    inputs.push_back(examples + "/" + row.what.example->program);
  }
  const Status possible = report::check_outputs({{"--json", flags.json}}, inputs);
  if (!possible) return possible;
  const bench::Scratch scratch;
  if (scratch.path().empty()) return io_error("cannot make a temporary directory");
  const bench::CopySetting setting = {examples, scratch.path(), flags.platform, flags.dilation,
                                      {},       &run_under};
  Result<size_t> rounds = 0;
  {
    const Progress progress;
    rounds = bench::run_rounds(*rows, setting, {flags.rounds, flags.seconds},
                               [&](const std::string& text) { progress.show(text); });
  }
  if (!rounds) return rounds.error();
  if (flags.simulated) {
    if (Status status = simulate_copies(*rows, setting); !status) return status;
  }
  const bench::CopyReport report{flags.platform, *rounds, *std::move(rows)};
  std::string text = bench::copy_tables(report);
  if (flags.simulated) text += "\n" + bench::simulated_tables(report);
  return report::write_results(text, flags.json, bench::copy_json(report));
}

}  // namespace

void add_bench_copy(const Command& bench) {
  const auto [command, flags] = add_command<Flags>(
      bench, "copy", "The examples on the emulated GPU, policy by policy", &bench_copy);
  command.value("--examples", flags.examples, "NAME,...", "Which, comma-separated [all]");
  add_policies_and_platform(command, flags);
  command.value("--dilation", flags.dilation, "K",
                "A modelled second takes K real ones [40 / cores; vllm 100]",
                whole_number(1, 10000));
  command.value("--workers", flags.workers, "N,...",
                "Threads that seal and open; several, comma-separated, to compare",
                whole_number(1, 1024));
  command.value("--rounds", flags.rounds, "N",
                "Of all examples under all policies, 2 to 3 s each [3]", whole_number(1, 1000));
  command.value("--seconds", flags.seconds, "S", "More rounds, as long as they end within this [0]",
                real_number(0, 3600));
  command.value("--examples-dir", flags.examples_dir, "DIR", "Where the examples are [beside us]");
  command.flag("--simulated", flags.simulated,
               "Record each example, too, and show what the simulator says of it beside");
  command.json(flags.json);
  command.footer(
      "Examples:\n"
      "  sealane bench copy --json copy.json\n"
      "  sealane bench copy --examples layer_swap,kv_swap --policies off,stock,parallel\n"
      "  sealane bench copy --workers 2,4,8 --policies off,stock,parallel,sealane\n"
      "  sealane bench copy --simulated --platform h100-nvl-aesni\n"
      "\n"
      "Times are device time on the emulated GPU; docs/watching.md has the details.");
}

}  // namespace sealane::cli
