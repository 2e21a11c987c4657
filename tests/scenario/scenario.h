// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A scenario: a short program, what goes wrong meanwhile, and what must be seen. Read from
// tests/scenarios/*.txt; the words are explained in tests/scenarios/README.md. It says nothing of
// who runs it: see target.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "workload/operation.h"

namespace sealane::test {

struct ScenarioSetup {
  std::string platform = "h100-nvl-tdx";
  std::string policy = "speculate";
  uint32_t workers = 4;
  uint64_t budget_bytes = 256_MiB;
  uint32_t queues = 0;  // 0: the platform's
  bool page_guards = true;
};

// What happens just before an operation, besides it.
struct ScenarioFault {
  enum class Kind : uint8_t {
    rotate,          // the driver changes the keys
    driver_message,  // the driver uses the lane for itself
    stall,           // no worker begins anything
    flip,            // the bus changes a bit of the next message to the device,
    drop,            // loses it,
    repeat,          // delivers it twice,
    swap,            // or delivers it after the one behind it
  };
  Kind kind;
  size_t before;  // index of the operation
  Duration stall{0};
};

struct Expectation {
  enum class Relation : uint8_t { exactly, at_least, at_most };
  size_t line;
  size_t after;        // operations run before it is looked at
  size_t since;        // operations run at the last mark
  std::string what{};  // "ok", "error", "as-fast-as-stock", or a counter
  Relation relation = Relation::exactly;
  uint64_t value = 0;
  bool live = false;    // of a runtime in a real process only; counted from the beginning
  std::string under{};  // a policy; empty: under every one that guesses
};

struct Scenario {
  std::string name;   // of the file, without .txt
  std::string title;  // the first comment
  ScenarioSetup setup;
  workload::Program program;
  std::vector<ScenarioFault> faults;
  std::vector<Expectation> expectations;

  // What happens in the first `operations` operations.
  Scenario prefix(size_t operations) const;
};

// A usage error of one line names file and line.
Result<Scenario> parse_scenario(std::string_view text, const std::string& file);
Result<Scenario> load_scenario(const std::string& path);

}  // namespace sealane::test
