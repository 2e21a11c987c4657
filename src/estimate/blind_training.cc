// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "base/try.h"
#include "estimate/blind.h"

namespace sealane::estimate {
namespace {

struct RealOption {
  std::string_view name;
  double DdpOptions::*to;
  double DdpOptions::*spread;  // of what is not given; nullptr: the platform's, or none
};
constexpr std::array kReals{
    RealOption{"network-gb-per-s", &DdpOptions::network_gb_per_s, &DdpOptions::network_spread},
    RealOption{"tunnel-gb-per-s", &DdpOptions::tunnel_gb_per_s, &DdpOptions::tunnel_spread},
    RealOption{"seal-gb-per-s", &DdpOptions::seal_gb_per_s, nullptr},
    RealOption{"compute-tflops", &DdpOptions::compute_tflops, nullptr}};

struct CountOption {
  std::string_view name;
  uint64_t most;
  void (*set)(DdpOptions&, uint64_t);
};
constexpr std::array kCounts{
    CountOption{"gpus", 1 << 20,
                [](DdpOptions& to, uint64_t n) { to.gpus = static_cast<uint32_t>(n); }},
    CountOption{"gpus-per-machine", 1'024,
                [](DdpOptions& to, uint64_t n) { to.gpus_per_machine = static_cast<uint32_t>(n); }},
    CountOption{"batch", 1'000'000, [](DdpOptions& to, uint64_t n) { to.batch = n; }},
    CountOption{"bucket-bytes", uint64_t{1} << 40,
                [](DdpOptions& to, uint64_t n) { to.bucket_bytes = n; }}};

constexpr std::string_view kAll =
    "gpus gpus-per-machine batch bucket-bytes network-gb-per-s tunnel-gb-per-s seal-gb-per-s "
    "compute-tflops link sealer fabric";

std::optional<std::string> set_number(DdpOptions& options, std::string_view key, double value) {
  for (const RealOption& each : kReals) {
    if (each.name != key) continue;
    if (!(value >= 0.001 && value <= 1e6)) return "must be a number from 0.001 to 1000000";
    options.*each.to = value;
    if (each.spread != nullptr) options.*each.spread = 0;  // what was given is known
    return std::nullopt;
  }
  for (const CountOption& each : kCounts) {
    if (each.name != key) continue;
    if (!(value >= 1 && value <= static_cast<double>(each.most)) || value != std::floor(value)) {
      return fmt::format("must be a whole number from 1 to {}", each.most);
    }
    each.set(options, static_cast<uint64_t>(value));
    return std::nullopt;
  }
  return fmt::format("means nothing to '{}', which reads: {}", kTrainingWorkload, kAll);
}

std::optional<std::string> set_word(DdpOptions& options, std::string_view key,
                                    const std::string& value) {
  if (key == "link") {
    const auto link = find_link(value);
    if (link) options.link = *link;
    return link ? std::nullopt : std::optional<std::string>("pcie, nvlink or nvlink-encrypted");
  }
  if (key == "sealer") {
    const auto sealer = find_sealer(value);
    if (sealer) options.sealer = *sealer;
    return sealer ? std::nullopt : std::optional<std::string>("cpu, copy-engine or gpu-kernel");
  }
  if (key != "fabric") return set_number(options, key, std::nan(""));
  if (value != "sealane" && value != "nccl") return "sealane or nccl";
  options.fabric = value == "nccl" ? Fabric::nccl : Fabric::sealane;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> set_training_option(DdpOptions& options, std::string_view key,
                                               const std::variant<double, std::string>& value) {
  if (const auto* number = std::get_if<double>(&value)) return set_number(options, key, *number);
  return set_word(options, key, std::get<std::string>(value));
}

Result<Foretold> foretell_training(const BlindRun& run, const Platform& platform, uint32_t draws) {
  DdpOptions options = run.ddp;
  options.draws = draws;
  options.workers = run.workers;
  const std::vector<std::string> policies{run.policy};
  SEALANE_LET(const auto rows, estimate_ddp(*run.training, platform, options, policies));
  const DdpRow& row = rows.back();
  const Interval time{1e3 * row.time_range.low, 1e3 * row.time_range.high};
  if (run.metric == Metric::time) return Foretold{run.name, "ms", 1e3 * row.time_s, time};
  if (run.metric == Metric::slowdown) {
    return Foretold{run.name, "x", row.slowdown, row.slowdown_range};
  }
  return Foretold{run.name, "%", row.loss_pct, row.loss_range};
}

}  // namespace sealane::estimate
