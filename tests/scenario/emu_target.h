// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios on the emulated GPU as its driver is shipped. Bytes, order and errors are judged; there
// are no slots and no policy to look into, and nothing is timed.
#pragma once

#include <string>
#include <vector>

#include "scenario/emu_play.h"
#include "scenario/target.h"

namespace sealane::test {

class EmuTarget final : public ScenarioTarget {
 public:
  explicit EmuTarget(std::vector<std::string> environment = {}) : options_{environment, 0} {}

  bool judges(const Expectation& expected) const override {
    return expected.what == "ok" || expected.what == "error";
  }
  Result<std::unique_ptr<Observation>> run(const Scenario& scenario) override;

 private:
  PlayOptions options_;
};

}  // namespace sealane::test
