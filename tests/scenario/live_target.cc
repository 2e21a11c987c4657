// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/live_target.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "scenario/emu_play.h"

namespace sealane::test {
namespace {

using nlohmann::json;

// One worker besides the caller: what is tested is what they do to each other, not how fast.
constexpr int kWorkers = 2;
// How slowly a program is played, one attempt after the other.
constexpr unsigned kWaitsPercent[] = {10, 50, 200, 1000, 4000};

// The runtime's word for a scenario's.
std::string field_of(std::string_view counter) {
  if (counter == "hit") return "hits";
  if (counter == "ready") return "messages_ahead";
  if (counter == "padded") return "pads";
  if (counter == "held") return "holds";
  if (counter == "slots") return "slot_bytes_peak";
  return std::string(counter);
}

// A number, or the sum of an object's: what was voided is counted by reason.
uint64_t total(const json& counted) {
  if (!counted.is_object()) return counted.get<uint64_t>();
  uint64_t sum = 0;
  for (const json& part : counted) sum += part.get<uint64_t>();
  return sum;
}

class LiveObservation final : public Observation {
 public:
  LiveObservation(Played played, json stats, std::string lie)
      : played_(std::move(played)), stats_(std::move(stats)), lie_(std::move(lie)) {}

  std::string violation() const override {
    return !played_.violation.empty() ? played_.violation : lie_;
  }
  std::string error() const override { return played_.error; }

  // Nothing if nobody guesses: without a lane that does there is nothing to count.
  std::optional<uint64_t> counter(std::string_view name) const override {
    const json& lanes = stats_.at("speculation").at("lanes");
    if (lanes.empty() || !lanes[0].contains(field_of(name))) return std::nullopt;
    uint64_t sum = 0;
    for (const json& lane : lanes) sum += total(lane.at(field_of(name)));
    return sum;
  }
  std::optional<Duration> elapsed() const override { return std::nullopt; }

 private:
  Played played_;
  json stats_;
  std::string lie_;
};

// Sealing ahead is tried where it pays on every machine: pinned memory is the runtime's, so that
// page guards watch it. With the driver's own memory a digest has to, and a fast engine is as fast
// as that.
std::string parts_of(const std::string& policy) {
  if (policy != "speculate") return concat("SEALANE_POLICY=", policy);
  return "SEALANE_ENABLE=engine,async,parallel,coalesce,register,speculate,pinned";
}

std::vector<std::string> environment_for(const ScenarioSetup& setup, const std::string& policy) {
  return {concat("LD_PRELOAD=", SEALANE_PRELOAD), parts_of(policy),
          concat("SEALANE_WORKERS=", kWorkers),
          concat("SEALANE_SLOT_MB=", setup.budget_bytes / 1_MiB),
          concat("SEALANE_PAGE_GUARDS=", setup.page_guards ? 1 : 0)};
}

// What the device says against the runtime; empty if nothing.
std::string contradiction(const json& truth, const Scenario& scenario, bool failed) {
  const auto attack = [](const ScenarioFault& fault) {
    return fault.kind == ScenarioFault::Kind::flip || fault.kind == ScenarioFault::Kind::drop ||
           fault.kind == ScenarioFault::Kind::repeat || fault.kind == ScenarioFault::Kind::swap;
  };
  const bool attacked = std::any_of(scenario.faults.begin(), scenario.faults.end(), attack);
  if (attacked != (truth.at("attacks").get<uint64_t>() > 0)) return "the attack did not happen";
  if (failed && attacked) return {};
  for (const char* direction : {"to_device", "to_host"}) {
    const json& lane = truth.at(direction);
    if (lane.at("rejected") != 0) return concat("a message was rejected ", direction);
    if (lane.at("sealed_bytes") != lane.at("verified_bytes")) {
      return concat("not every sealed byte was verified ", direction);
    }
    if (lane.at("positions") != lane.at("messages")) {
      return concat("positions and messages differ ", direction);
    }
  }
  return {};
}

}  // namespace

bool LiveTarget::judges(const Expectation& expected) const {
  if (expected.live) return expected.under.empty() || expected.under == policy_;
  return expected.what == "ok" || expected.what == "error" || expected.what == "slots";
}

Result<std::unique_ptr<Observation>> LiveTarget::run(const Scenario& scenario) {
  const ScratchFile stats(concat(scenario.name, "-", policy_, ".stats"));
  const ScratchFile truth(concat(scenario.name, "-", policy_, ".truth"));
  PlayOptions options{environment_for(scenario.setup, policy_), waits_percent_};
  options.environment.push_back("SEALANE_STATS=" + stats.path());
  options.environment.push_back("SEALANE_EMU_STATS=" + truth.path());
  auto played = play_on_emulator(scenario, options);
  if (!played) return played.error();
  json said = json::parse(stats.text(), nullptr, false);
  const json seen = json::parse(truth.text(), nullptr, false);
  if (said.is_discarded()) return internal_error("the runtime wrote no statistics");
  if (seen.is_discarded()) return internal_error("the device wrote no truth counters");
  std::string lie = contradiction(seen, scenario, !played->error.empty());
  return std::unique_ptr<Observation>(
      std::make_unique<LiveObservation>(*std::move(played), std::move(said), std::move(lie)));
}

std::vector<std::string> run_patiently(const Scenario& scenario, const std::string& policy) {
  std::vector<std::string> failures;
  for (const unsigned percent : kWaitsPercent) {
    LiveTarget live(policy, percent);
    failures = run_scenario(scenario, live);
    const bool only_too_few =
        std::all_of(failures.begin(), failures.end(), [](const std::string& failure) {
          return failure.find("expected ") != failure.npos &&
                 failure.find(" at least ") != failure.npos;
        });
    if (failures.empty() || !only_too_few) break;
  }
  return failures;
}

}  // namespace sealane::test
