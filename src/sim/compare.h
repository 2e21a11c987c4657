// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The patterns of workload/patterns.h under the policies people compare: how often copies are
// foreseen, and what each step from CC as shipped to ours buys. Every pattern comes twice, with a
// host that runs ahead of the device and with one that waits for each kernel ("lockstep").
// Deterministic, no threads.
//
// What counts: bulk copies to the device (128 KiB and more) after the first two periods. A copy is
// a hit if a slot was claimed for it: it was planned at its position when it was requested, and the
// guard, if there was one already, had held. It is ready if the slot was sealed by then.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/policy.h"
#include "platform/platform.h"
#include "workload/patterns.h"

namespace sealane::sim {

struct Foreseen {
  uint64_t copies = 0;
  double hit_rate = 0;
  double ready_rate = 0;  // of messages
  bool silent = false;    // nothing was sealed ahead, nothing voided
};
struct HitRow {
  workload::Pattern pattern{};
  bool lockstep = false;
  Foreseen pipellm;
  Foreseen ours;  // speculate
};
std::vector<HitRow> compare_hits(const Platform& platform);

// Each step adds one switch to the one before; `sealane` is what the runtime does, which seals
// ahead only where that pays; `off` is what is left to gain.
struct PolicyStep {
  std::string_view name;
  Policy policy;
};
// stock, engine, async, parallel, speculate, sealane, off
std::span<const PolicyStep> policy_steps();
constexpr size_t kPolicySteps = 7;

struct StepRow {
  workload::Pattern pattern{};
  bool lockstep = false;
  std::array<Duration, kPolicySteps> elapsed{};  // of twenty periods
};
std::vector<StepRow> compare_steps(const Platform& platform);

// {"simulated":true,"platform":…,"hits":[{"pattern","lockstep","copies","speculate":{"hit_rate",
//  "ready_rate","silent"},"pipellm":{…}}]}
std::string to_json(std::string_view platform, std::span<const HitRow> rows);
// {"simulated":true,"platform":…,"steps":[{"pattern","lockstep","stock_ms","engine_ms",…}]}
std::string to_json(std::string_view platform, std::span<const StepRow> rows);

}  // namespace sealane::sim
