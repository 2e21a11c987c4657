// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench seal`: from flags to a plan, from the plan to results. How they are measured and
// shown is in src/bench (seal_trial.cc, seal_report.cc).

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_count.h"
#include "base/try.h"
#include "bench/seal_report.h"
#include "bench/seal_trial.h"
#include "cli/checkup.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "os/machine.h"
#include "report/output.h"
#include "seal/openssl.h"

namespace sealane::cli {
namespace {

constexpr uint64_t kRecordBytesMax = 1_GiB;
constexpr double kSecondsMax = 3600;
constexpr double kSecondsQuick = 5;

struct Flags {
  std::vector<std::string> engines;
  std::vector<std::string> record_bytes;
  std::string where;
  double seconds = 20;
  bool quick = false;
  std::string json;
};

struct Step {
  bench::Where where;
  uint64_t record_bytes;
  uint64_t walk_bytes;
};

struct Plan {
  std::vector<const Engine*> engines;
  std::vector<std::string> notes;  // what was left out, and why
  std::vector<Step> steps;
  Duration budget;
};

// Without a wish, every engine that runs here.
Status plan_engines(const Flags& flags, Plan& plan) {
  const auto wanted = [&](const Engine* engine) {
    return flags.engines.empty() || std::find(flags.engines.begin(), flags.engines.end(),
                                              engine->name()) != flags.engines.end();
  };
  for (const std::string& name : flags.engines) {
    if (auto engine = find_engine(name); !engine) {
      return usage_error("--engine: " + engine.error().message);
    }
  }
  for (const Engine* engine : all_engines()) {
    if (!wanted(engine)) continue;
    if (const Status available = engine->available(); !available) {
      plan.notes.push_back(
          fmt::format("{} left out: {}", engine->name(), available.error().message));
      continue;
    }
    // The speed of a wrong answer is of no interest.
    SEALANE_TRY(self_test(*engine, openssl_engine()));
    plan.engines.push_back(engine);
  }
  return {};
}

Result<std::set<uint64_t>> parse_sizes(const Flags& flags) {
  if (flags.record_bytes.empty()) {
    return std::set<uint64_t>{4_KiB, 16_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB};
  }
  std::set<uint64_t> sizes;
  for (const std::string& text : flags.record_bytes) {
    const auto size = parse_byte_count(text, kRecordBytesMax);
    if (!size) return usage_error("--record-bytes: " + size.error().message);
    sizes.insert(*size);
  }
  return sizes;
}

Status plan_steps(const Flags& flags, Plan& plan) {
  SEALANE_LET(const auto sizes, parse_sizes(flags));
  const bench::CacheSizes caches = bench::cache_sizes();
  for (const bench::Where where : {bench::Where::dram, bench::Where::l2}) {
    if (!flags.where.empty() && flags.where != to_string(where)) continue;
    for (const uint64_t size : sizes) {
      const uint64_t walk = bench::walk_bytes(where, size, caches);
      if (walk > 0) plan.steps.push_back({where, size, walk});
    }
  }
  if (plan.steps.empty()) {
    return usage_error(
        fmt::format("--record-bytes: none of these fits the L2 cache of {}; choose smaller records",
                    format_byte_count(caches.l2_bytes)));
  }
  return {};
}

Result<Plan> make_plan(const Flags& flags) {
  Plan plan;
  const double seconds = flags.quick ? kSecondsQuick : flags.seconds;
  plan.budget = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  SEALANE_TRY(plan_engines(flags, plan));
  SEALANE_TRY(plan_steps(flags, plan));
  return plan;
}

Result<std::vector<bench::TrialResult>> measure(const Plan& plan) {
  uint64_t walk_bytes_max = 0;
  for (const Step& step : plan.steps) walk_bytes_max = std::max(walk_bytes_max, step.walk_bytes);
  const SteadyClock clock;
  SEALANE_LET(auto trial, bench::SealTrial::make(plan.engines, walk_bytes_max, clock));

  std::vector<bench::TrialResult> results;
  const Progress progress;
  for (const Step& step : plan.steps) {
    progress.show(fmt::format("measuring {} of {}: records of {}, {}", results.size() + 1,
                              plan.steps.size(), format_byte_count(step.record_bytes),
                              to_string(step.where)));
    results.push_back(trial.measure(step.where, step.record_bytes, step.walk_bytes,
                                    plan.budget / static_cast<int64_t>(plan.steps.size())));
  }
  return results;
}

Status bench_seal(const Flags& flags) {
  SEALANE_LET(const auto plan, make_plan(flags));
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, {}));
  SEALANE_LET(auto results, measure(plan));

  bench::SealReport report{std::move(results),          {}, plan.notes, {}, true,
                           cpu_gaps(read_machine().cpu)};
  const auto chosen = chosen_engine();
  const bool measured =
      chosen && std::find(plan.engines.begin(), plan.engines.end(), *chosen) != plan.engines.end();
  report.usual = measured;
  report.in_use = measured ? (*chosen)->name() : plan.engines.front()->name();
  for (const Engine* engine : plan.engines) {
    report.versions.emplace_back(engine->name(), engine->version());
  }
  return report::write_results(bench::seal_table(report), flags.json, bench::seal_json(report));
}

}  // namespace

void add_bench_seal(const Command& bench) {
  const auto [command, flags] = add_command<Flags>(
      bench, "seal", "How fast records are sealed and opened, next to memcpy and OpenSSL",
      &bench_seal);
  command.value("--engine", flags.engines, "NAME",
                "Only this engine (vaes-512, vaes-256, aes-ni, ipsec-mb, openssl); repeatable");
  command.value("--record-bytes", flags.record_bytes, "N[K|M|G]",
                "Only records of this size, at most 1G; repeatable [4K 16K 64K 256K 1M 4M]");
  command.value("--where", flags.where, "l2|dram", "Only records in the cache or in memory [both]",
                one_of({"l2", "dram"}));
  command.value("--seconds", flags.seconds, "S", "Time to measure [20]",
                real_number(0.001, kSecondsMax));
  command.flag("--quick", flags.quick, "A first impression in 5 seconds").excludes({"--seconds"});
  command.json(flags.json);
  command.footer(
      "Examples:\n"
      "  sealane bench seal --quick\n"
      "  sealane bench seal --record-bytes 64K --where dram --seconds 60\n"
      "  sealane bench seal --json seal.json");
}

}  // namespace sealane::cli
