// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/simulated_copies.h"

#include <fmt/core.h>

#include <string>

#include "bench/engine_report.h"
#include "core/copy/copy_threads.h"
#include "platform/reader.h"
#include "sim/recorded.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

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

}  // namespace

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

}  // namespace sealane::cli
