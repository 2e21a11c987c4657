// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What --observe found, as plain numbers, and what follows from it: which of Sealane's assumptions
// hold here, what each part would have saved, a verdict, and the page that says so. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "watch/stock_costs.h"

namespace sealane::serve {

struct Findings {
  bool emulated = false;
  bool paced = false;        // emulated, and times are the modelled machine's
  double seconds = 0;        // from the first GPU call to the last; times are device time
  double waits_s = 0;        // callers in synchronising calls
  unsigned workers = 1;      // there would be
  double fast_gb_per_s = 0;  // our engine on one core, measured here

  struct Way {
    uint64_t copies = 0;
    uint64_t bytes = 0;
    double blocked_s = 0;       // callers in copies
    uint64_t async_copies = 0;  // that CUDA lets return at once, and Sealane can carry
    double async_blocked_s = 0;
    double async_aead_s = 0;
    uint64_t snapshot_bytes = 0;  // of them, pageable sources
    double aead_s = 0;            // of the driver, sealing or opening
    uint64_t messages = 0;
    uint64_t seen_bytes = 0;        // of copies, that passed libcrypto
    uint64_t direct_bytes = 0;      // of them, named by the driver at their place in the copy
    uint64_t own_thread_bytes = 0;  // of them, on the thread that asked for the copy
    uint64_t extra_messages = 0;    // of the driver's own
    uint64_t hit_bytes = 0;         // to the device: predicted
    uint64_t judged_bytes = 0;      // to the device: large enough to be predicted
    uint64_t hits = 0;
    uint64_t judged = 0;
  };
  Way to_device;
  Way to_host;

  uint64_t message_bytes_max = 0;
  uint64_t updates_max = 0;
  uint64_t additional_bytes_max = 0;
  uint64_t channels = 0;
  uint64_t keys = 0;
  uint64_t keys_replaced = 0;
  uint64_t ivs = 0;
  uint64_t ivs_broken = 0;
  uint64_t guardable_bytes = 0;
  uint64_t unguardable_bytes = 0;
  uint64_t unguardable_pinned_bytes = 0;  // of them: memory that --enable pinned would replace
  std::string guard_refusal;
  uint64_t sources_unchanged = 0;
  uint64_t sources_changed = 0;
  std::string predictor;    // that led at the end
  std::string speculation;  // what would have been decided about it; empty: unknown
  std::vector<std::string> notes;
};

// One assumption about the driver or the program.
struct Check {
  enum class State : uint8_t {
    holds,
    differs,  // and Sealane copes
    fails,    // something of Sealane cannot be used
    unknown,  // nothing came by to tell it from
  };
  State state = State::unknown;
  std::string what;
  std::string found;
};
std::vector<Check> check(const Findings& found);

// How long callers wait in copies, and how long sealing stands in the way of data.
struct Outlook {
  std::string parts;  // that are switched on
  double callers_wait_s = 0;
  double sealing_s = 0;
};
std::vector<Outlook> outlook(const Findings& found, const StockCosts& costs);

std::string verdict(const Findings& found);
std::string findings_page(const Findings& found, const StockCosts& costs);

// The same for programs: "observed" of --stats.
void write_findings(JsonWriter& json, const Findings& found, const StockCosts& costs);

}  // namespace sealane::serve
