// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The simulator: runs the core that ships on a modelled host and GPU, in virtual time, and checks
// with an oracle of its own that no invariant is broken. One seed is one history, on every machine.
//
// Two ways in: run() for seeds (`sealane sim`), simulate() for one program (estimates, scenarios,
// replayed traces). Both are deterministic and use no threads; run different seeds on different
// threads if there is time to save.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/copy/copy_threads.h"
#include "core/policy.h"
#include "core/rules.h"
#include "platform/platform.h"
#include "sim/timeline.h"
#include "workload/feed.h"
#include "workload/operation.h"

namespace sealane::sim {

enum class Mode : uint8_t {
  swarm,        // every seed another subset of features, sizes and faults
  serve,        // serving loops: weights, KV swaps, control copies
  adversarial,  // programs made to defeat prediction and guards
};
std::optional<Mode> find_mode(std::string_view name);
std::string_view to_string(Mode mode);

// Turns the rule of that name off ("iv-once", "stale", ...); false if there is none. Builds without
// mutants have none.
bool break_rule(SafetyRules& rules, std::string_view name);
std::vector<std::string_view> rule_names();

// What goes wrong besides the program itself. Probabilities are per operation of the program.
struct Faults {
  double driver_message = 0;  // the driver uses the lane for itself
  double rotation = 0;
  double worker_stall = 0;
  double guard_write = 0;     // the program writes to a range that is sealed ahead, just then
  double free_in_flight = 0;  // and frees and allocates it again
  double tamper = 0;          // a bus message is changed, dropped, repeated or swapped
  double refused_step = 0;    // of a copy's call: the driver cannot record an event or put a gate
  double apart = 0;           // per crossing: copies cannot be gathered after all
  double no_room = 0;         // per record: somebody else has the memory for it
  double crash = 0;           // work of the program fails its context
  Duration stall{2'000'000};
};

// What goes wrong at a chosen moment: just before the operation of that index.
struct ScriptedFault {
  enum class Kind : uint8_t {
    rotation,        // of every lane
    driver_message,  // in the lane of bulk copies
    worker_stall,    // no worker begins anything for `stall`
    flip,            // the next record sent to the device is changed on the bus,
    drop,            // lost,
    repeat,          // delivered twice,
    swap,            // or delivered after the one behind it
  };
  uint64_t before = 0;
  Kind kind = Kind::rotation;
  Duration stall{0};
};

// The machine and the runtime for one run.
struct Setup {
  Platform platform;
  Policy policy;
  SafetyRules rules;
  Faults faults;
  std::vector<ScriptedFault> script;
  uint64_t seed = 0;
  uint32_t workers = 4;
  uint64_t slot_bytes_max = 256 << 20;
  uint64_t key_messages_max = uint64_t{1} << 32;
  uint32_t hardware_queues = 0;  // 0: the platform's
  bool page_guards = true;
  uint32_t contexts_max = 16;            // of ours: copy threads that can be opened
  uint32_t bulk_threads = kBulkThreads;  // for what is sealed ahead; the paper has one
  double registered = 0;                 // share of pinned allocations that are registered memory
  double mapped = 0;                     //   or that the device can write
  double staged = 0;          // share of channels whose driver seals from memory of its own
  bool history = false;       // keep the events for Violation::history
  size_t timeline_spans = 0;  // keep so many for Outcome::timeline
  double patience = 1;        // scales the bounds beyond which a run is livelocked (patience.h)
};

struct Violation {
  uint64_t seed = 0;
  std::string rule;  // "stale"
  std::string what;  // one line
  Instant at{};
  std::vector<std::string> history;  // the events before it, oldest first
  std::string replay;                // the command that shows it again
};

struct Counters {
  uint64_t operations = 0;
  uint64_t events = 0;
  uint64_t bulk_requests = 0;
  uint64_t bulk_hits = 0;
  uint64_t messages = 0;
  uint64_t messages_ready = 0;
  uint64_t voided = 0;
  uint64_t padded = 0;
  uint64_t relinquished = 0;
  uint64_t held = 0;
  uint64_t resealed = 0;
  uint64_t coalesced = 0;
  uint64_t slot_bytes_max = 0;
  uint64_t rotations = 0;
  uint64_t faults = 0;
  uint64_t sealed_bytes = 0;     // asked for by the program, both directions
  uint64_t sealed_messages = 0;  // as the driver counts: at most 1 MiB each
  Duration workers_busy{0};      // workers and threads that carry copies, all together

  void add(const Counters& other);
  double hit_rate() const;  // of bulk copies to the device; 1 if there were none
};

struct Outcome {
  Duration elapsed{0};  // virtual, until the last thread has returned
  Counters counters;
  std::optional<Violation> violation;
  std::optional<std::string> error;  // what the program was told, if the lane failed
  std::vector<Span> timeline;
};

// Runs one program once.
Outcome simulate(const workload::Program& program, const Setup& setup);
// The same for a program that is written while it runs. Its operations have no numbers, so a script
// of faults does not reach it.
Outcome simulate(workload::Feed& feed, const Setup& setup);

struct SimOptions {
  uint64_t first_seed = 0;
  uint64_t last_seed = 0;  // included
  uint64_t ops = 2000;     // per seed
  Mode mode = Mode::swarm;
  // Instead of programs made from seeds: this one, recorded (recorded.h), by this name.
  const workload::Program* recorded = nullptr;
  std::string recorded_name;
  std::string policy = "speculate";  // the one with the most rules to break
  std::string break_rule;            // empty: none
  bool compare_stock = true;         // run every program under `stock` too
  bool stop_at_violation = true;
  Platform platform;
  std::string platform_name;  // as the replay command names it
  std::function<void(uint64_t seeds_done, uint64_t seeds)> progress;  // may be empty
};

struct SimOutcome {
  uint64_t seeds = 0;
  uint64_t ops = 0;
  std::vector<Violation> violations;
  Counters counters;
  double vs_stock_worst = 0;  // 0 if not compared
  uint64_t vs_stock_worst_seed = 0;
};

// A usage error for unknown names.
Result<SimOutcome> run(const SimOptions& options);

// {"seeds","ops","events","violations","hit_rate","voided","padded","relinquished","slot_bytes_max",
//  "vs_stock_worst"}
std::string to_json(const SimOutcome& outcome);

}  // namespace sealane::sim
