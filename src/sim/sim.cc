// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/programs.h"
#include "sim/recorded.h"

namespace sealane::sim {
namespace {

#ifdef SEALANE_MUTANTS
struct RuleName {
  std::string_view name;
  bool SafetyRules::*rule;
};
constexpr std::array<RuleName, 23> kRules{{
    {"order", &SafetyRules::order},
    {"run", &SafetyRules::run},
    {"legacy", &SafetyRules::legacy},
    {"landing", &SafetyRules::landing},
    {"early-read", &SafetyRules::early_read},
    {"gate", &SafetyRules::gate},
    {"gate-order", &SafetyRules::gate_order},
    {"snapshot", &SafetyRules::snapshot},
    {"read-at-turn", &SafetyRules::read_at_turn},
    {"verify-before-use", &SafetyRules::verify_before_use},
    {"run-behind-forgery", &SafetyRules::run_behind_forgery},
    {"fail-first", &SafetyRules::fail_first},
    {"deliver-after-failure", &SafetyRules::deliver_after_failure},
    {"wipe", &SafetyRules::wipe},
    {"message-match", &SafetyRules::message_match},
    {"capture", &SafetyRules::capture},
    {"freed-range", &SafetyRules::freed_range},
    {"iv-once", &SafetyRules::iv_once},
    {"stale", &SafetyRules::stale},
    {"stale-at-turn", &SafetyRules::stale_at_turn},
    {"unseen-writer", &SafetyRules::unseen_writer},
    {"budget", &SafetyRules::budget},
    {"rotation", &SafetyRules::rotation},
}};
#endif

struct ModeName {
  std::string_view name;
  Mode mode;
};
constexpr std::array<ModeName, 3> kModes{
    {{"swarm", Mode::swarm}, {"serve", Mode::serve}, {"adversarial", Mode::adversarial}}};

std::string replay_command(const SimOptions& options, uint64_t seed) {
  std::string command =
      options.recorded != nullptr
          ? fmt::format("sealane sim {} --seed {} --policy {}", options.recorded_name, seed,
                        options.policy)
          : fmt::format("sealane sim --seed {} --ops {} --mode {} --policy {}", seed, options.ops,
                        to_string(options.mode), options.policy);
  if (!options.platform_name.empty()) command += " --platform " + options.platform_name;
  if (!options.break_rule.empty()) command += " --break " + options.break_rule;
  return command;
}

// The same program on the same machine, once with our runtime and once without. Stalls, tampering
// and the driver's own business are left out: they would have to happen to both.
double time_against_stock(const Case& made, const Policy& policy) {
  Setup setup = made.setup;
  setup.faults = {};
  setup.faults.guard_write = made.setup.faults.guard_write;
  setup.faults.free_in_flight = made.setup.faults.free_in_flight;
  setup.bulk_threads = kBulkThreads;  // as the runtime has them
  setup.policy = policy;
  const Outcome ours = simulate(made.program, setup);
  setup.policy = *find_policy("stock");
  const Outcome stock = simulate(made.program, setup);
  if (stock.elapsed == Duration{0}) return 1;
  return static_cast<double>(ours.elapsed.count()) / static_cast<double>(stock.elapsed.count());
}

}  // namespace

std::optional<Mode> find_mode(std::string_view name) {
  for (const ModeName& each : kModes) {
    if (each.name == name) return each.mode;
  }
  return std::nullopt;
}

std::string_view to_string(Mode mode) {
  for (const ModeName& each : kModes) {
    if (each.mode == mode) return each.name;
  }
  return "";
}

bool break_rule([[maybe_unused]] SafetyRules& rules, [[maybe_unused]] std::string_view name) {
#ifdef SEALANE_MUTANTS
  for (const RuleName& each : kRules) {
    if (each.name != name) continue;
    rules.*each.rule = false;
    return true;
  }
#endif
  return false;
}

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names;
#ifdef SEALANE_MUTANTS
  for (const RuleName& each : kRules) names.push_back(each.name);
#endif
  return names;
}

void Counters::add(const Counters& other) {
  operations += other.operations;
  events += other.events;
  bulk_requests += other.bulk_requests;
  bulk_hits += other.bulk_hits;
  messages += other.messages;
  messages_ready += other.messages_ready;
  voided += other.voided;
  padded += other.padded;
  relinquished += other.relinquished;
  held += other.held;
  resealed += other.resealed;
  coalesced += other.coalesced;
  slot_bytes_max = std::max(slot_bytes_max, other.slot_bytes_max);
  rotations += other.rotations;
  faults += other.faults;
  sealed_bytes += other.sealed_bytes;
  sealed_messages += other.sealed_messages;
  workers_busy += other.workers_busy;
}

double Counters::hit_rate() const {
  if (bulk_requests == 0) return 1;
  return static_cast<double>(bulk_hits) / static_cast<double>(bulk_requests);
}

Result<SimOutcome> run(const SimOptions& options) {
  const Policy* policy = find_policy(options.policy);
  if (policy == nullptr) return usage_error(fmt::format("there is no policy '{}'", options.policy));
  SafetyRules rules;
  if (!options.break_rule.empty() && !break_rule(rules, options.break_rule)) {
    return usage_error(fmt::format("there is no rule '{}': use one of {}", options.break_rule,
                                   fmt::join(rule_names(), ", ")));
  }
  if (options.last_seed < options.first_seed)
    return usage_error("the last seed is before the first");

  SimOutcome outcome;
  const uint64_t seeds = options.last_seed - options.first_seed + 1;
  for (uint64_t done = 0; done < seeds; ++done) {  // the last seed may be the last number
    const uint64_t seed = options.first_seed + done;
    Case made = options.recorded != nullptr
                    ? make_recorded_case(*options.recorded, seed, options.platform)
                    : make_case(options.mode, seed, options.ops, options.platform);
    made.setup.policy = *policy;
    made.setup.rules = rules;
    Outcome one = simulate(made.program, made.setup);
    outcome.counters.add(one.counters);
    outcome.ops += one.counters.operations;
    ++outcome.seeds;
    if (one.violation) {
      made.setup.history = true;  // again, now with everything written down
      Violation violation = *simulate(made.program, made.setup).violation;
      violation.replay = replay_command(options, seed);
      outcome.violations.push_back(std::move(violation));
      if (options.stop_at_violation) break;
    } else if (options.compare_stock && policy->carries()) {
      const double ratio = time_against_stock(made, *policy);
      if (ratio > outcome.vs_stock_worst) {
        outcome.vs_stock_worst = ratio;
        outcome.vs_stock_worst_seed = seed;
      }
    }
    if (options.progress) options.progress(outcome.seeds, seeds);
  }
  return outcome;
}

std::string to_json(const SimOutcome& outcome) {
  return fmt::format(
      R"({{"seeds":{},"ops":{},"events":{},"violations":{},"hit_rate":{:.4f},"voided":{},"padded":{},)"
      R"("relinquished":{},"slot_bytes_max":{},"vs_stock_worst":{:.4f},"vs_stock_worst_seed":{},)"
      R"("bulk_copies":{}}})",
      outcome.seeds, outcome.ops, outcome.counters.events, outcome.violations.size(),
      outcome.counters.hit_rate(), outcome.counters.voided, outcome.counters.padded,
      outcome.counters.relinquished, outcome.counters.slot_bytes_max, outcome.vs_stock_worst,
      outcome.vs_stock_worst_seed, outcome.counters.bulk_requests);
}

}  // namespace sealane::sim
