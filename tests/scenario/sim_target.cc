// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/sim_target.h"

#include "base/text.h"
#include "core/policy.h"
#include "platform/reader.h"
#include "sim/sim.h"

namespace sealane::test {
namespace {

class SimObservation final : public Observation {
 public:
  explicit SimObservation(sim::Outcome outcome) : outcome_(std::move(outcome)) {}

  std::string violation() const override {
    if (!outcome_.violation) return {};
    std::string text =
        concat("violated ", outcome_.violation->rule, ": ", outcome_.violation->what);
    for (const std::string& event : outcome_.violation->history) text += "\n  " + event;
    return text;
  }

  std::string error() const override { return outcome_.error.value_or(""); }

  std::optional<uint64_t> counter(std::string_view name) const override {
    const sim::Counters& counters = outcome_.counters;
    if (name == "hit") return counters.bulk_hits;
    if (name == "ready") return counters.messages_ready;
    if (name == "voided") return counters.voided;
    if (name == "padded") return counters.padded;
    if (name == "relinquished") return counters.relinquished;
    if (name == "held") return counters.held;
    if (name == "resealed") return counters.resealed;
    if (name == "coalesced") return counters.coalesced;
    if (name == "slots") return counters.slot_bytes_max;
    return std::nullopt;
  }

  std::optional<Duration> elapsed() const override { return outcome_.elapsed; }

 private:
  sim::Outcome outcome_;
};

sim::ScriptedFault::Kind kind_of(ScenarioFault::Kind kind) {
  switch (kind) {
    case ScenarioFault::Kind::rotate:
      return sim::ScriptedFault::Kind::rotation;
    case ScenarioFault::Kind::driver_message:
      return sim::ScriptedFault::Kind::driver_message;
    case ScenarioFault::Kind::stall:
      return sim::ScriptedFault::Kind::worker_stall;
    case ScenarioFault::Kind::flip:
      return sim::ScriptedFault::Kind::flip;
    case ScenarioFault::Kind::drop:
      return sim::ScriptedFault::Kind::drop;
    case ScenarioFault::Kind::repeat:
      return sim::ScriptedFault::Kind::repeat;
    case ScenarioFault::Kind::swap:
      return sim::ScriptedFault::Kind::swap;
  }
  SEALANE_CHECK(false, "a fault the simulator does not know");
}

}  // namespace

Result<std::unique_ptr<Observation>> SimTarget::run(const Scenario& scenario) {
  auto platform = find_platform(scenario.setup.platform);
  if (!platform) return platform.error();
  const Policy* policy = find_policy(scenario.setup.policy);
  if (policy == nullptr) return usage_error("unknown policy '" + scenario.setup.policy + "'");

  sim::Setup setup;
  setup.platform = *std::move(platform);
  setup.policy = *policy;
  setup.workers = scenario.setup.workers;
  setup.slot_bytes_max = scenario.setup.budget_bytes;
  setup.hardware_queues = scenario.setup.queues;
  setup.page_guards = scenario.setup.page_guards;
  setup.history = true;
  for (const ScenarioFault& fault : scenario.faults) {
    setup.script.push_back({fault.before, kind_of(fault.kind), fault.stall});
  }
  return std::unique_ptr<Observation>(
      std::make_unique<SimObservation>(sim::simulate(scenario.program, setup)));
}

}  // namespace sealane::test
