// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios live: a real process on the emulated GPU under the transparent runtime, with one of its
// policies. What the program sees is judged by every statement that is judged without the runtime;
// what the runtime did, by its own counters (--stats) where timing cannot change them; and the
// device's truth counters must say that each message was sealed once, in order, and verified.
//
// Runs differ: threads are real. So counters count from the beginning (a mark would compare two
// runs), and only bounds that hold however the threads run are judged; see
// tests/scenarios/README.md.
#pragma once

#include <string>
#include <vector>

#include "scenario/target.h"

namespace sealane::test {

class LiveTarget final : public ScenarioTarget {
 public:
  // Kernels and thinking take this part of their time.
  explicit LiveTarget(std::string policy, unsigned waits_percent = 10)
      : policy_(std::move(policy)), waits_percent_(waits_percent) {}

  bool judges(const Expectation& expected) const override;
  Result<std::unique_ptr<Observation>> run(const Scenario& scenario) override;

 private:
  const std::string policy_;
  const unsigned waits_percent_;
};

// Runs a scenario under a policy and judges it. That something is foreseen *and sealed in time* is
// promised only to a program that gives the workers time, and on a busy machine they get none: so
// if nothing but "at least so many" did not come true, the program is played again, slower.
std::vector<std::string> run_patiently(const Scenario& scenario, const std::string& policy);

}  // namespace sealane::test
