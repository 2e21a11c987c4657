// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench engines`: the engines that `make engines` installed, on the emulated GPU, without
// CC mode, with it as shipped, and under our policies; and what they copy. Each engine's program is
// in examples/engines.

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/try.h"
#include "bench/copy_rounds.h"
#include "bench/engine_report.h"
#include "bench/scratch.h"
#include "cli/command.h"
#include "cli/copy_run.h"
#include "cli/progress.h"
#include "cli/run_environment.h"
#include "platform/reader.h"
#include "report/output.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::vector<std::string> engines;
  std::vector<std::string> policies;
  std::string platform = "h100-tdx";
  std::string dilation;
  std::string workers;
  std::string python;
  std::string traces;
  size_t rounds = 3;
  double seconds = 0;
  bool quick = false;
  std::string json;
};

// As `sealane run --compute-capability 12.0` would: what PyTorch's wheels have code for.
Result<bench::CopySetting::Entering> run_under(const bench::CopySetting& setting,
                                               const bench::CopyExample& engine,
                                               const bench::CopyPolicy& policy,
                                               const bench::CopyFiles& files) {
  RunOptions options = copy_run(setting, engine, policy, files);
  options.set("SEALANE_EMU_COMPUTE_CAPABILITY", "12.0");
  options.set("SEALANE_EMU_MEMORY", "2G");
  SEALANE_LET(auto environment, copy_environment(options));
  environment.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
  environment.emplace_back("HF_HUB_OFFLINE", "1");  // models are made in code
  return bench::CopySetting::Entering([variables = std::move(environment)] { enter(variables); });
}

// The interpreter of `make engines`, unless another one was named.
Result<std::string> find_python(const Flags& flags) {
  const std::string asked = flags.python;
  if (!asked.empty()) {
    std::error_code failed;
    const auto whole = std::filesystem::absolute(asked, failed);
    if (access(asked.c_str(), X_OK) == 0 && !failed) return whole.string();
    return usage_error(fmt::format("--python: {} cannot be run", asked));
  }
  const auto found = directory_of("PyTorch and the engines", "python", {"engines/venv/bin"});
  if (found) return *found + "/python";
  return io_error(
      "no engines here: `make engines` installs them (docs/engines.md), or name an "
      "interpreter that has them with --python");
}

// Copies of a recorded program, by size and direction.
Result<bench::CopySizes> sizes_of_trace(const std::string& file) {
  std::ifstream in(file);
  workload::TraceReader reader(in, file);
  bench::CopySizes sizes;
  while (true) {
    SEALANE_LET(const auto operation, reader.next());
    if (!operation) return sizes;
    const auto* copy = std::get_if<workload::Copy>(&operation->action);
    if (copy == nullptr) continue;
    sizes.add(copy->direction == Direction::to_device, copy->memory == MemoryKind::pageable,
              copy->host.bytes);
  }
}

// Where --traces keeps what was recorded.
std::string kept_trace(const Flags& flags, const bench::CopyExample& engine) {
  return flags.traces + "/" + engine.name + ".trace";
}

Result<bench::CopySizes> record(const bench::CopyExample& engine, const bench::CopySetting& setting,
                                const Flags& flags) {
  SEALANE_TRY(bench::run_copy_example(engine, bench::recording(), setting));
  const std::string trace = bench::files_of(engine, bench::recording(), setting).trace;
  if (!flags.traces.empty()) {
    std::error_code error;
    const std::string kept = kept_trace(flags, engine);
    std::filesystem::copy_file(trace, kept, std::filesystem::copy_options::overwrite_existing,
                               error);
    if (error) return io_error(fmt::format("cannot write {}: {}", kept, error.message()));
  }
  return sizes_of_trace(trace);
}

Status check_flags(const Flags& flags) {
  std::error_code failed;
  if (!flags.traces.empty() && !std::filesystem::is_directory(flags.traces, failed)) {
    return usage_error(fmt::format("--traces: {} is not a directory", flags.traces));
  }
  return {};
}

Status check_files(const Flags& flags, const std::vector<const bench::CopyExample*>& engines,
                   const std::string& python) {
  std::vector<report::NamedFile> outputs = {{"--json", flags.json}};
  std::vector<std::string> inputs = own_libraries();
  inputs.insert(inputs.end(), {platform_file(flags.platform), python});
  for (const bench::CopyExample* engine : engines) {
    if (!flags.traces.empty()) outputs.push_back({"--traces", kept_trace(flags, *engine)});
    for (const std::string& word : engine->arguments) {
      if (word.find('/') != std::string::npos) inputs.push_back(word);
    }
  }
  return report::check_outputs(outputs, inputs);
}

// Every engine once, written down, then the rounds.
Result<bench::EngineReport> measure(const Flags& flags,
                                    const std::vector<const bench::CopyExample*>& engines,
                                    const std::vector<const bench::CopyPolicy*>& policies,
                                    const bench::CopySetting& setting) {
  bench::EngineReport report;
  report.measured.platform = flags.platform;
  const Progress progress;
  for (const bench::CopyExample* engine : engines) {
    progress.show(fmt::format("recording {}", engine->name));
    SEALANE_LET(auto sizes, record(*engine, setting, flags));
    report.sizes.push_back(std::move(sizes));
    for (const bench::CopyPolicy* policy : policies) {
      report.measured.rows.push_back({{engine, flags.workers}, policy, {}});
    }
  }
  const auto rounds = bench::run_rounds(report.measured.rows, setting,
                                        {flags.quick ? 1 : flags.rounds, flags.seconds},
                                        [&](const std::string& text) { progress.show(text); });
  if (!rounds) return rounds.error();
  report.measured.rounds = *rounds;
  return report;
}

Status bench_engines(const Flags& flags) {
  SEALANE_TRY(check_flags(flags));
  SEALANE_LET(const auto python, find_python(flags));
  SEALANE_LET(const auto programs,
              directory_of("the engines' programs", "run.py",
                           {"examples/engines", SEALANE_LIBDIR "/sealane/examples/engines"}));
  const auto all = bench::engines(python, programs);
  const auto all_policies = bench::engine_policies();
  SEALANE_LET(const auto engines, choose(all, flags.engines, "engine"));
  SEALANE_LET(const auto policies, choose(all_policies, flags.policies, "policy"));
  SEALANE_TRY(check_files(flags, engines, python));

  const bench::Scratch scratch;
  if (scratch.path().empty()) return io_error("cannot make a temporary directory");
  const bench::CopySetting setting = {{}, scratch.path(), flags.platform, flags.dilation,
                                      {}, &run_under};
  const auto report = measure(flags, engines, policies, setting);
  if (!report) return report.error();
  return report::write_results(bench::engine_tables(*report), flags.json,
                               bench::engine_json(*report));
}

}  // namespace

void add_bench_engines(const Command& bench) {
  const auto [command, flags] = add_command<Flags>(
      bench, "engines", "PyTorch's engines on the emulated GPU, policy by policy", &bench_engines);
  command.value("--engines", flags.engines, "NAME,...", "Which, comma-separated [all]");
  add_policies_and_platform(command, flags);
  command.value("--dilation", flags.dilation, "K", "A modelled second takes K real ones [120]",
                whole_number(1, 10000));
  command.value("--workers", flags.workers, "N", "Threads that seal and open",
                whole_number(1, 1024));
  command.value("--rounds", flags.rounds, "N", "Of all engines under all policies [3]",
                whole_number(1, 1000));
  command.value("--seconds", flags.seconds, "S", "More rounds, as long as they end within this [0]",
                real_number(0, 36000));
  command.flag("--quick", flags.quick, "One round instead of three, at least")
      .excludes({"--rounds"});
  command.value("--python", flags.python, "FILE",
                "The interpreter that has the engines [of `make engines`]");
  command.value("--traces", flags.traces, "DIR", "Keep what was recorded in this directory");
  command.json(flags.json);
  command.footer(
      "Engines: transformers (weights offloaded by Accelerate), transformers-kv (its\n"
      "offloaded KV cache), peft (LoRA, base weights offloaded), flexgen.\n"
      "Examples:\n"
      "  sealane bench engines --quick\n"
      "  sealane bench engines --engines transformers --policies off,stock,sealane\n"
      "  sealane bench engines --engines peft --workers 1\n"
      "\n"
      "Times are device time on the emulated GPU; docs/engines.md has the details.");
}

}  // namespace sealane::cli
