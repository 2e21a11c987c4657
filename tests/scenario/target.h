// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who runs a scenario. The simulator is one target (sim_target.h); anything that can run a
// workload::Program, checks the bytes it delivers, and can be told when something goes wrong can be
// another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "scenario/scenario.h"

namespace sealane::test {

// What was seen of one run, from its beginning.
class Observation {
 public:
  virtual ~Observation() = default;

  // A promise was broken: wrong bytes, wrong order, a position used twice. Empty if none.
  virtual std::string violation() const = 0;
  // What the program was told, if a call failed. Empty if none did.
  virtual std::string error() const = 0;
  // Nothing for what the target cannot see, as a GPU cannot see a hit.
  virtual std::optional<uint64_t> counter(std::string_view name) const = 0;
  virtual std::optional<Duration> elapsed() const = 0;
};

class ScenarioTarget {
 public:
  virtual ~ScenarioTarget() = default;
  // Whether it can judge this. Nothing is run for the sake of what it cannot.
  virtual bool judges(const Expectation& expected) const = 0;
  virtual Result<std::unique_ptr<Observation>> run(const Scenario& scenario) = 0;
};

// One line per expectation that was not met, "file:line: ..."; none if all were. Expectations the
// target cannot judge are skipped. A violation is always a failure.
std::vector<std::string> run_scenario(const Scenario& scenario, ScenarioTarget& target);

}  // namespace sealane::test
