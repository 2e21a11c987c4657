// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/policy.h"

#include <array>

namespace sealane {
namespace {

constexpr Policy kOff{.name = "off", .confidential = false};
constexpr Policy kStock{.name = "stock"};
constexpr Policy kParallel{.name = "parallel",
                           .fast_engine = true,
                           .async = true,
                           .parallel = true,
                           .coalesce = true,
                           .by_cost = true};
// The paper tells swaps from control traffic by size and leaves room for control copies by a
// constant. It seals with the same engine as we do, so that the comparison is about its rules.
constexpr Policy kPipeLlm{.name = "pipellm",
                          .fast_engine = true,
                          .async = true,
                          .parallel = true,
                          .foresight = Foresight::paper,
                          .fixed_leeway = 2};
constexpr Policy kSealane{.name = "sealane",
                          .fast_engine = true,
                          .async = true,
                          .parallel = true,
                          .foresight = Foresight::tournament,
                          .where_it_pays = true,
                          .coalesce = true,
                          .by_cost = true};
constexpr Policy forced(Policy policy) {
  policy.name = "speculate";
  policy.where_it_pays = false;
  return policy;
}

constexpr std::array kPolicies{kOff, kStock, kParallel, kPipeLlm, kSealane, forced(kSealane)};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace sealane
