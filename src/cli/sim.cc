// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane sim: runs the core that ships in a simulated machine, seed by seed, and looks for broken
// promises. A violation is shown with what led to it and with the command that shows it again.

#include "sim/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_count.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/sim_seeds.h"
#include "cli/sim_tables.h"
#include "core/policy.h"
#include "platform/reader.h"
#include "report/output.h"
#include "workload/trace.h"

namespace sealane::cli {
namespace {

constexpr const char* kFirstPlatform = "h100-nvl-tdx";
constexpr uint64_t kSeedsMax = 10'000'000;
constexpr uint64_t kOpsMax = 10'000'000;

struct Flags {
  std::string seed;
  std::string seeds = "0..100";
  uint64_t ops = 2000;
  std::string mode = "swarm";
  std::string policy = "speculate";
  std::string platform;  // empty: the first, or for tables every one
  std::string broken;
  bool alone = false;
  bool hits = false;
  bool steps = false;
  std::vector<std::string> traces;
  std::string json;
};

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const sim::Mode mode : {sim::Mode::swarm, sim::Mode::serve, sim::Mode::adversarial}) {
    names.emplace_back(sim::to_string(mode));
  }
  return names;
}

bool parse_seed(std::string_view text, uint64_t& seed) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return failed == std::errc() && end == text.data() + text.size();
}

Status plan_seeds(const Flags& flags, sim::SimOptions& options) {
  if (!flags.seed.empty()) {
    if (!parse_seed(flags.seed, options.first_seed)) {
      return usage_error(fmt::format("--seed: '{}' is not a number", flags.seed));
    }
    options.last_seed = options.first_seed;
    return {};
  }
  const std::string_view text = flags.seeds;
  const size_t dots = text.find("..");
  const bool read = dots != std::string_view::npos &&
                    parse_seed(text.substr(0, dots), options.first_seed) &&
                    parse_seed(text.substr(dots + 2), options.last_seed);
  if (!read) {
    return usage_error(fmt::format("--seeds: '{}' is not a range such as 0..100", text));
  }
  if (options.first_seed > options.last_seed) {
    return usage_error(fmt::format("--seeds: {} begins after its end", text));
  }
  if (options.last_seed - options.first_seed >= kSeedsMax) {
    return usage_error(fmt::format("--seeds: at most {} at a time", kSeedsMax));
  }
  return {};
}

Result<sim::SimOptions> plan(const Flags& flags) {
  sim::SimOptions options;
  if (Status status = plan_seeds(flags, options); !status) return status.error();
  if (flags.ops == 0 || flags.ops > kOpsMax) {
    return usage_error(fmt::format("--ops: {} is not from 1 to {}", flags.ops, kOpsMax));
  }
  options.ops = flags.ops;

  const auto mode = sim::find_mode(flags.mode);
  if (!mode) return unknown("mode", flags.mode, mode_names());
  options.mode = *mode;
  if (find_policy(flags.policy) == nullptr) {
    return unknown("policy", flags.policy, names_of(policies()));
  }
  options.policy = flags.policy;

  if (!flags.broken.empty() && !kMutants) {
    return usage_error("--break: this build cannot turn rules off (cmake -DSEALANE_MUTANTS=ON)");
  }
  SafetyRules rules;
  if (!flags.broken.empty() && !sim::break_rule(rules, flags.broken)) {
    const auto names = sim::rule_names();
    return usage_error(fmt::format(
        "--break: unknown rule '{}'{}; there are {}", flags.broken,
        did_you_mean(flags.broken, std::vector<std::string>(names.begin(), names.end())),
        fmt::join(names, ", ")));
  }
  options.break_rule = flags.broken;
  options.compare_stock = !flags.alone;

  options.platform_name = flags.platform.empty() ? kFirstPlatform : flags.platform;
  auto platform = find_platform(options.platform_name);
  if (!platform) return platform.error();
  options.platform = *std::move(platform);
  return options;
}

std::string describe(const sim::Violation& violation) {
  std::string text = fmt::format(
      "Violation of '{}' in seed {} at {:.3f} ms: {}\n", violation.rule, violation.seed,
      static_cast<double>(violation.at.time_since_epoch().count()) / 1e6, violation.what);
  if (!violation.history.empty()) text += "What led to it:\n";
  for (const std::string& event : violation.history) text += fmt::format("  {}\n", event);
  return text + fmt::format("Replay: {}\n\n", visible(violation.replay));
}

std::string describe(const sim::SimOptions& options, const sim::SimOutcome& outcome) {
  std::string text;
  for (const sim::Violation& violation : outcome.violations) text += describe(violation);
  const sim::Counters& counters = outcome.counters;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22}{}\n", name, value);
  };
  const std::string what = options.recorded != nullptr
                               ? visible(options.recorded_name)
                               : fmt::format("mode {}", sim::to_string(options.mode));
  text += fmt::format("SIMULATED: {} {} of {}, policy {}, platform {}\n", outcome.seeds,
                      outcome.seeds == 1 ? "seed" : "seeds", what, options.policy,
                      visible(options.platform_name));
  if (!options.break_rule.empty()) row("rule turned off", options.break_rule);
  row("operations", fmt::format("{}", outcome.ops));
  row("events", fmt::format("{}", counters.events));
  row("violations", fmt::format("{}", outcome.violations.size()));
  row("hit rate",
      fmt::format("{:.1f} % of {} bulk copies", 100 * counters.hit_rate(), counters.bulk_requests));
  row("voided", fmt::format("{} slots", counters.voided));
  row("padded", fmt::format("{} messages", counters.padded));
  row("relinquished", fmt::format("{} planned copies", counters.relinquished));
  row("slot memory, most", format_byte_count(counters.slot_bytes_max));
  if (outcome.vs_stock_worst > 0) {
    row("time against stock", fmt::format("{:.3f} at worst (seed {})", outcome.vs_stock_worst,
                                          outcome.vs_stock_worst_seed));
  }
  return text;
}

Result<sim::SimOutcome> run_watched(sim::SimOptions& options) {
  const Progress progress;
  if (progress.watched()) {
    options.progress = [&](uint64_t done, uint64_t all) {
      progress.show(
          fmt::format("simulating {} {} of {} seeds", progress_bar(done, all), done, all));
    };
  }
  return run_seeds(options, std::max(1u, std::thread::hardware_concurrency()));
}

// One kind of programs, from their first seed to their last.
Status simulate_seeds(const Flags& flags, sim::SimOptions options) {
  const Result<sim::SimOutcome> outcome = run_watched(options);
  if (!outcome) return outcome.error();
  const Status status =
      report::write_both(describe(options, *outcome), flags.json, sim::to_json(*outcome) + "\n");
  if (!status) return status;
  if (outcome->violations.empty()) return {};
  return internal_error(fmt::format("{} violated; replay: {}", outcome->violations.front().rule,
                                    outcome->violations.front().replay));
}

Status simulate_traces(const Flags& flags, sim::SimOptions options) {
  if (flags.traces.size() > 1 && !flags.json.empty()) {
    return usage_error("--json takes one trace at a time");
  }
  for (const std::string& path : flags.traces) {
    const auto program = workload::load_trace(path);
    if (!program) return program.error();
    options.recorded = &*program;
    options.recorded_name = path;
    if (Status status = simulate_seeds(flags, options); !status) return status;
  }
  return {};
}

// Tables of patterns are for every one.
std::vector<std::string> platforms_of(const Flags& flags) {
  if (!flags.platform.empty()) return {flags.platform};
  const bool table = (flags.hits && flags.traces.empty()) || flags.steps;
  return table ? platform_names() : std::vector<std::string>{kFirstPlatform};
}

Status simulate(const Flags& flags) {
  std::vector<std::string> inputs = flags.traces;
  for (const std::string& name : platforms_of(flags)) inputs.push_back(platform_file(name));
  const Status possible = report::check_outputs({{"--json", flags.json}}, inputs);
  if (!possible) return possible;
  if (flags.hits && !flags.traces.empty()) {
    return show_trace_hits(flags.traces, flags.platform.empty() ? kFirstPlatform : flags.platform,
                           flags.json);
  }
  if (flags.hits || flags.steps) {
    return show_sim_table(flags.hits ? SimTable::hits : SimTable::steps, platforms_of(flags),
                          flags.json);
  }
  const auto options = plan(flags);
  if (!options) return options.error();
  return flags.traces.empty() ? simulate_seeds(flags, *options) : simulate_traces(flags, *options);
}

}  // namespace

void add_sim(const Command& root) {
  const auto [command, flags] = add_command<Flags>(
      root, "sim",
      "Run the core in a simulated machine, seed by seed, and look for broken promises", &simulate);
  command.value("--seed", flags.seed, "N", "Only this seed");
  command.value("--seeds", flags.seeds, "A..B", "From the first to the last, included [0..100]")
      .excludes({"--seed"});
  command.value("--ops", flags.ops, "N", "Operations of each seed's program [2000]");
  command.value("--mode", flags.mode, "swarm|serve|adversarial",
                "What the programs are like [swarm]");
  command.value("--policy", flags.policy, "P",
                "off, stock, parallel, pipellm, sealane, speculate [speculate]");
  command.value("--platform", flags.platform, "P",
                "Name or file of a platform [h100-nvl-tdx; tables: every one]");
  command.value("--break", flags.broken, "RULE",
                "Turn one safety rule off, in builds of tests: order, gate, stale-at-turn, "
                "iv-once and others; a wrong name lists all. The simulator must notice");
  command.flag("--alone", flags.alone,
               "Do not run each program under stock too, for comparison: a third of the time");
  const std::vector<std::string> of_seeds = {"--seed",   "--seeds", "--ops",  "--mode",
                                             "--policy", "--break", "--alone"};
  command
      .flag("--hits", flags.hits,
            "No seeds: how often the copies of each pattern, or trace, are foreseen")
      .excludes(of_seeds);
  command
      .flag("--steps", flags.steps,
            "No seeds: what each step from stock to sealane buys, per pattern")
      .excludes(of_seeds)
      .excludes({"--hits"});
  command
      .value("traces", flags.traces, "TRACE",
             "Recorded programs (sealane record) instead of made ones: seed 0 is as it was "
             "recorded, all "
             "others are disturbed")
      .excludes({"--ops", "--mode", "--steps"});
  command.output("--json", flags.json,
                 "Write results for programs, of tables a list; - is stdout, no text");
  command.footer(
      "Exit status 1 if a promise was broken. One seed is one history, everywhere.\n"
      "Examples:\n"
      "  sealane sim --seeds 0..2000 --mode swarm\n"
      "  sealane sim --seeds 0..200 --break stale\n"
      "  sealane sim --steps --platform h100-tdx\n"
      "  sealane sim --hits program.trace\n"
      "  sealane sim --seed 17 --ops 500 --policy pipellm --json -");
}

}  // namespace sealane::cli
