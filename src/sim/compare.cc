// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/compare.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/json_writer.h"
#include "sim/sim.h"

namespace sealane::sim {
namespace {

constexpr uint32_t kLearning = 2;  // periods
constexpr uint32_t kCounted = 20;

Policy with_engine() {
  Policy policy = *find_policy("stock");
  policy.fast_engine = true;
  return policy;
}

// As `--enable engine,async`: copies travel together from the next step on.
Policy with_async() {
  Policy policy = *find_policy("parallel");
  policy.parallel = policy.coalesce = false;
  return policy;
}

Outcome run_pattern(const Platform& platform, const Policy& policy, workload::Pattern pattern,
                    bool lockstep, uint32_t periods) {
  workload::PatternOptions options;
  options.steps = periods;
  options.lockstep = lockstep;
  Setup setup;
  setup.platform = platform;
  setup.policy = policy;
  Outcome outcome = simulate(workload::make_pattern(pattern, options), setup);
  SEALANE_CHECK(!outcome.violation, "a pattern without faults broke a rule");
  return outcome;
}

Foreseen foreseen(const Platform& platform, std::string_view policy, workload::Pattern pattern,
                  bool lockstep) {
  const auto counters = [&](uint32_t periods) {
    return run_pattern(platform, *find_policy(policy), pattern, lockstep, periods).counters;
  };
  const Counters before = counters(kLearning);
  const Counters all = counters(kLearning + kCounted);
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const uint64_t copies = all.bulk_requests - before.bulk_requests;
  return {.copies = copies,
          .hit_rate = share(all.bulk_hits - before.bulk_hits, copies),
          .ready_rate =
              share(all.messages_ready - before.messages_ready, all.messages - before.messages),
          .silent = all.bulk_hits + all.messages_ready + all.voided == 0};
}

std::string json_of(const Foreseen& foreseen) {
  return fmt::format(R"({{"hit_rate":{:.4f},"ready_rate":{:.4f},"silent":{}}})", foreseen.hit_rate,
                     foreseen.ready_rate, foreseen.silent);
}

template <typename Row, typename Format>
std::string rows_json(std::string_view platform, std::string_view name, std::span<const Row> rows,
                      Format&& format) {
  std::string text = fmt::format(R"({{"simulated":true,"platform":{},"{}":[)",
                                 JsonWriter().element(platform).text(), name);
  for (const Row& row : rows) {
    if (&row != rows.data()) text += ',';
    text += fmt::format(R"({{"pattern":"{}","lockstep":{})", workload::to_string(row.pattern),
                        row.lockstep);
    format(text, row);
    text += '}';
  }
  return text + "]}";
}

}  // namespace

std::span<const PolicyStep> policy_steps() {
  static const std::array<PolicyStep, kPolicySteps> kSteps{{
      {"stock", *find_policy("stock")},
      {"engine", with_engine()},
      {"async", with_async()},
      {"parallel", *find_policy("parallel")},
      {"speculate", *find_policy("speculate")},
      {"sealane", *find_policy("sealane")},
      {"off", *find_policy("off")},
  }};
  return kSteps;
}

std::vector<HitRow> compare_hits(const Platform& platform) {
  std::vector<HitRow> rows;
  for (const workload::Pattern pattern : workload::patterns()) {
    for (const bool lockstep : {false, true}) {
      rows.push_back({.pattern = pattern,
                      .lockstep = lockstep,
                      .pipellm = foreseen(platform, "pipellm", pattern, lockstep),
                      .ours = foreseen(platform, "speculate", pattern, lockstep)});
    }
  }
  return rows;
}

std::vector<StepRow> compare_steps(const Platform& platform) {
  std::vector<StepRow> rows;
  for (const workload::Pattern pattern : workload::patterns()) {
    for (const bool lockstep : {false, true}) {
      StepRow row{.pattern = pattern, .lockstep = lockstep};
      for (size_t i = 0; i < kPolicySteps; ++i) {
        const Policy& policy = policy_steps()[i].policy;
        const auto elapsed = [&](uint32_t periods) {
          return run_pattern(platform, policy, pattern, lockstep, periods).elapsed;
        };
        row.elapsed[i] = elapsed(kLearning + kCounted) - elapsed(kLearning);
      }
      rows.push_back(row);
    }
  }
  return rows;
}

std::string to_json(std::string_view platform, std::span<const HitRow> rows) {
  return rows_json(platform, "hits", rows, [](std::string& text, const HitRow& row) {
    text += fmt::format(R"(,"copies":{},"speculate":{},"pipellm":{})", row.ours.copies,
                        json_of(row.ours), json_of(row.pipellm));
  });
}

std::string to_json(std::string_view platform, std::span<const StepRow> rows) {
  return rows_json(platform, "steps", rows, [](std::string& text, const StepRow& row) {
    for (size_t i = 0; i < kPolicySteps; ++i) {
      text += fmt::format(R"(,"{}_ms":{:.3f})", policy_steps()[i].name,
                          static_cast<double>(row.elapsed[i].count()) / 1e6);
    }
  });
}

}  // namespace sealane::sim
