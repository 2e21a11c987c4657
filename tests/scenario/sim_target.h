// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios on the simulator, which sees everything.
#pragma once

#include "scenario/target.h"

namespace sealane::test {

class SimTarget final : public ScenarioTarget {
 public:
  bool judges(const Expectation& expected) const override { return !expected.live; }
  Result<std::unique_ptr<Observation>> run(const Scenario& scenario) override;
};

}  // namespace sealane::test
