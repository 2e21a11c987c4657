// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Training on platforms and with constants drawn from their spreads: the intervals of ddp.h.

#include <algorithm>
#include <cmath>
#include <limits>

#include "estimate/ddp.h"
#include "platform/spread.h"

namespace sealane::estimate {
namespace {

struct Varying {
  const char* name;
  double* number;  // of the options
  double spread;
  Knowledge kind;
};

std::vector<Varying> varying(DdpOptions& options) {
  const auto published = Knowledge::published;
  const auto elsewhere = Knowledge::elsewhere;
  const auto assumed = Knowledge::assumed;
  const auto usual = [](const char* name, double& number, Knowledge kind) {
    return Varying{name, &number, usual_spread(kind), kind};
  };
  DdpConstants& to = options.constants;
  return {{"network_gb_per_s", &options.network_gb_per_s, options.network_spread, assumed},
          {"tunnel_gb_per_s", &options.tunnel_gb_per_s, options.tunnel_spread, assumed},
          usual("pcie_gb_per_s", to.pcie_gb_per_s, elsewhere),
          usual("encrypted_nvlink", to.encrypted_nvlink, published),
          usual("fold_gb_per_s", to.fold_gb_per_s, assumed),
          usual("gpu_kernel_gb_per_s", to.gpu_kernel_gb_per_s, assumed),
          usual("hop_s", to.hop_s, assumed),
          {"aes128_gain", &to.aes128_gain, 0.15, assumed},
          {"launches_per_tensor", &to.launches_per_tensor, 1.0, assumed},
          {"dispatch_us", &to.dispatch_us, 1.24, assumed}};
}

// Ten rounds instead of fourteen: AES-128 is never slower, and never 1.4 times as fast.
void keep_possible(DdpOptions& options) {
  options.constants.aes128_gain = std::clamp(options.constants.aes128_gain, 1.0, 1.4);
}

template <typename Needed>
Interval range_of(Needed needed, const workload::TrainingModel& model, const Platform& platform,
                  const DdpOptions& options, double slowdown) {
  const auto value = [&](const Platform& where, const DdpOptions& with) {
    const auto found = needed(model, where, with, slowdown);
    return found ? static_cast<double>(*found) : std::numeric_limits<double>::infinity();
  };
  std::vector<double> values;
  for (uint32_t draw = 0; draw < options.draws; ++draw) {
    values.push_back(value(drawn(platform, draw, options.draws), drawn(options, draw)));
  }
  return four_in_five(value(platform, options), std::move(values));
}

}  // namespace

DdpOptions drawn(const DdpOptions& options, uint32_t index) {
  DdpOptions result = options;
  for (const Varying& each : varying(result)) {
    *each.number *= drawn_factor(each.name, each.spread, index, options.draws);
  }
  keep_possible(result);
  return result;
}

std::vector<Unknown> ddp_unknowns(const workload::TrainingModel& model, const Platform& platform,
                                  const DdpOptions& options,
                                  const std::vector<std::string>& policies) {
  const auto slowdowns = [model, policies](const Platform& where, DdpOptions with) -> Values {
    with.draws = 0;
    const auto rows = estimate_ddp(model, where, with, policies);
    if (!rows) return rows.error();
    std::vector<double> values;
    for (const DdpRow& row : *rows) values.push_back(row.slowdown);
    return values;
  };
  std::vector<Unknown> unknowns =
      unknowns_of(platform, [=](const Platform& where) { return slowdowns(where, options); });
  DdpOptions copy = options;
  const std::vector<Varying> all = varying(copy);
  for (size_t i = 0; i < all.size(); ++i) {
    unknowns.push_back({all[i].name, all[i].kind, all[i].spread, [=](int direction) {
                          DdpOptions with = options;
                          const Varying each = varying(with)[i];
                          *each.number *= std::pow(1 + each.spread, direction);
                          keep_possible(with);
                          return slowdowns(platform, with);
                        }});
  }
  return unknowns;
}

Interval needed_workers_range(const workload::TrainingModel& model, const Platform& platform,
                              const DdpOptions& options, double slowdown) {
  return range_of(needed_workers, model, platform, options, slowdown);
}

Interval needed_seal_rate_range(const workload::TrainingModel& model, const Platform& platform,
                                const DdpOptions& options, double slowdown) {
  return range_of(needed_seal_rate, model, platform, options, slowdown);
}

}  // namespace sealane::estimate
