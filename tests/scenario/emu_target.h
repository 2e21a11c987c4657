// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios on the emulated GPU: the program is played by a process of its own (player.cc), because
// a driver reads its configuration once. Bytes, order and errors are judged; what a runtime does
// inside (hits, slots) cannot be seen, and nothing is timed.
//
// `environment` is where a runtime between program and driver comes in: with its LD_PRELOAD there,
// the same files judge it by the same statements.
#pragma once

#include <string>
#include <vector>

#include "scenario/target.h"

namespace sealane::test {

class EmuTarget final : public ScenarioTarget {
 public:
  explicit EmuTarget(std::vector<std::string> environment = {})
      : environment_(std::move(environment)) {}

  bool sees_inside() const override { return false; }
  Result<std::unique_ptr<Observation>> run(const Scenario& scenario) override;

 private:
  std::vector<std::string> environment_;
};

}  // namespace sealane::test
