// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "estimate/ddp.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/collective/schedule.h"
#include "estimate/ddp_cost.h"
#include "platform/cost.h"
#include "platform/spread.h"

namespace sealane::estimate {
namespace {

constexpr std::array<std::string_view, 5> kPolicies{"off", "study", "buckets", "stock", "sealane"};
constexpr std::array<std::string_view, 5> kNcclPolicies{"off", "plain", "tls", "wireguard",
                                                        "sealane"};

constexpr double kForwardShare = 1.0 / 3;  // of an iteration's work; the rest is the backward pass
constexpr uint32_t kRecordBytes = 64 << 10;  // as our collectives seal
constexpr double kChunk = 1 << 20;           // what the pipeline's stages hand on
constexpr uint32_t kGpusMax = 1024;
constexpr uint32_t kMachinesMax = 1024;  // of Fabric::nccl
constexpr uint32_t kWorkersMax = 4096;
constexpr uint64_t kBucketBytesMax = 1_GiB;  // as much as anybody keeps twice

using Cost = BucketCost;

// --- off, study, stock

Cost off_cost(double bytes, const DdpOptions& options) {
  const double wire = open_wire(bytes, options);
  return {.busy = wire, .wire = wire};
}

Cost study_cost(double bytes, const DdpOptions& options, double message_s) {
  Cost cost = off_cost(bytes, options);
  cost.messages = 2 * (options.gpus - 1);
  cost.sealed_bytes = static_cast<uint64_t>(ring_share(options.gpus) * bytes);
  cost.seal = cost.verify = static_cast<double>(cost.messages) * message_s / 2;
  cost.busy += cost.seal + cost.verify;
  return cost;
}

Cost stock_cost(double bytes, const Platform& platform, const DdpOptions& options) {
  Cost cost = off_cost(bytes, options);
  if (options.gpus < 2) return cost;
  if (options.link == Link::nvlink_encrypted) {
    cost.busy = cost.wire = cost.wire / options.constants.encrypted_nvlink;
    return cost;
  }
  const auto chunk = static_cast<uint64_t>(bytes / options.gpus);
  const double hops = 2 * (options.gpus - 1);
  const double out = s(stock_copy_time(platform, platform.to_host, HostMemory::pinned, chunk));
  const double in = s(stock_copy_time(platform, platform.to_device, HostMemory::pinned, chunk));
  cost.verify = hops * s(stock_aead_time(platform, platform.to_host.cc, chunk, chunk));
  cost.seal = hops * s(stock_aead_time(platform, platform.to_device.cc, chunk, chunk));
  cost.busy = hops * (out + in);
  cost.wire = cost.busy - cost.verify - cost.seal;
  if (options.gpus > options.gpus_per_machine) {
    const double network = ring_share(options.gpus) * gb(bytes) / options.network_gb_per_s;
    cost.busy += network;
    cost.wire += network;
  }
  cost.messages = 2 * static_cast<uint64_t>(hops) * message_count(platform.cc, chunk);
  cost.sealed_bytes = 2 * static_cast<uint64_t>(hops) * chunk;
  return cost;
}

// --- sealane

// What a rank seals and opens in a schedule of core/collective.
struct Work {
  uint64_t sealed = 0;
  uint64_t opened = 0;
  uint64_t records = 0;  // sealed
};

Work work_of(Algorithm algorithm, uint32_t rank, uint32_t size, uint64_t bytes) {
  Work work;
  if (size < 2) return work;
  const Schedule schedule = make_schedule({.collective = Collective::all_reduce,
                                           .algorithm = algorithm,
                                           .rank = rank,
                                           .size = size,
                                           .bytes = bytes / 4 * 4,
                                           .record_bytes = kRecordBytes,
                                           .channel_records = 64});
  for (const Step& step : schedule.steps) {
    const uint64_t block = schedule.blocks[step.block].bytes;
    const bool seals = step.kind == StepKind::send || step.kind == StepKind::publish ||
                       step.kind == StepKind::relay;
    const bool opens = step.kind == StepKind::fold || step.kind == StepKind::relay ||
                       step.kind == StepKind::receive || step.kind == StepKind::forward;
    if (seals) {
      work.sealed += block;
      work.records += (block + kRecordBytes - 1) / kRecordBytes;
    }
    if (opens) work.opened += block;
  }
  return work;
}

// The slowest stage sets the pace; one chunk passes through all of them at the end.
void pipeline(Cost& cost, double bytes, std::initializer_list<double> stages, double fixed) {
  double sum = 0;
  for (const double stage : stages) {
    cost.busy = std::max(cost.busy, stage);
    sum += stage;
  }
  cost.rest = sum * std::min(1.0, kChunk / std::max(bytes, 1.0)) + fixed;
}

// GPUs of one machine meet in its CPU: each sends all its gradients and gets all sums. Every GPU
// has its own key, so the hub seals for each of them. Machines form a sealed ring.
Cost hub_cost(uint64_t bytes, const Platform& platform, const DdpOptions& options, double rate) {
  const uint32_t local = std::min(options.gpus, options.gpus_per_machine);
  const uint32_t machines =
      (options.gpus + options.gpus_per_machine - 1) / options.gpus_per_machine;
  const Work gpu = work_of(Algorithm::hub, 1, local + 1, bytes);
  const Work ring = work_of(Algorithm::ring, 0, machines, bytes);
  const double sealed = gb(static_cast<double>(local * bytes + ring.sealed));
  const double opened = gb(static_cast<double>(local * gpu.sealed + ring.opened));
  const double folded = gb(static_cast<double>(local * bytes)) + opened;

  Cost cost;
  cost.seal = sealed / rate / options.workers;
  cost.verify = opened / rate / options.workers;
  const double cpu =
      cost.seal + cost.verify + folded / options.constants.fold_gb_per_s / options.workers;
  const double out = gb(static_cast<double>(bytes)) / platform.to_host.cc.link_gb_per_s;
  const double in = gb(static_cast<double>(bytes)) / platform.to_device.cc.link_gb_per_s;
  // A machine's GPUs share its network ports; the ring needs one stream of the whole bucket.
  const double network = machines < 2 ? 0
                                      : ring_share(machines) * gb(static_cast<double>(bytes)) /
                                            (options.network_gb_per_s * local);
  cost.wire = out + in + network;
  cost.messages = gpu.records + (bytes + kRecordBytes - 1) / kRecordBytes;
  cost.sealed_bytes = gpu.sealed + bytes;
  const double tolls = (platform.to_host.cc.toll_us + platform.to_device.cc.toll_us) / 1e6 +
                       2 * (machines - 1) * options.constants.hop_s;
  pipeline(cost, static_cast<double>(bytes), {out, cpu, network, in}, tolls);
  return cost;
}

// Every GPU seals for its neighbour: partial sums again at every hop, results once.
Cost ring_cost(uint64_t bytes, const Platform& platform, const DdpOptions& options, double rate) {
  const Work work = work_of(Algorithm::ring, 0, options.gpus, bytes);
  const double carried = ring_share(options.gpus) * gb(static_cast<double>(bytes));
  Cost cost;
  cost.seal = gb(static_cast<double>(work.sealed)) / rate;
  cost.verify = gb(static_cast<double>(work.opened)) / rate;
  const double network =
      options.gpus > options.gpus_per_machine ? carried / options.network_gb_per_s : 0;
  const double out = carried / platform.to_host.cc.link_gb_per_s;
  const double in = carried / platform.to_device.cc.link_gb_per_s;
  cost.wire = out + in + network;
  cost.messages = work.records;
  cost.sealed_bytes = work.sealed;
  pipeline(
      cost, static_cast<double>(bytes), {out, in, network, cost.seal + cost.verify},
      2 * (options.gpus - 1) * (platform.to_device.cc.toll_us / 1e6 + options.constants.hop_s));
  return cost;
}

Cost sealane_cost(uint64_t bytes, const Platform& platform, const DdpOptions& options) {
  if (options.gpus < 2) return {};
  if (options.link == Link::nvlink_encrypted) {
    return stock_cost(static_cast<double>(bytes), platform, options);
  }
  double rate = default_seal_rate(platform, options.sealer).gb_per_s;
  if (options.sealer == Sealer::gpu_kernel) rate = options.constants.gpu_kernel_gb_per_s;
  if (options.seal_gb_per_s > 0) rate = options.seal_gb_per_s;
  return options.sealer == Sealer::cpu ? hub_cost(bytes, platform, options, rate)
                                       : ring_cost(bytes, platform, options, rate);
}

// --- an iteration

// Of the kernels, or of the host that launches them if it is slower.
double compute_time(const workload::TrainingModel& model, const DdpOptions& options,
                    double launch_us) {
  const uint64_t batch = options.batch > 0 ? options.batch : model.batch;
  const double kernels = model.sample_tflop * static_cast<double>(batch) / options.compute_tflops;
  const double launches =
      options.constants.launches_per_tensor * static_cast<double>(model.tensors().size());
  return std::max(kernels, launches * (options.constants.dispatch_us + launch_us) / 1e6);
}

// What was not given is the platform's.
DdpOptions completed(DdpOptions options, const Platform& platform) {
  double& bus = options.constants.nvlink_gb_per_s;
  if (options.compute_tflops <= 0) options.compute_tflops = platform.gpu.training_tflops;
  if (bus <= 0) bus = platform.gpu.nvlink_gb_per_s;
  return options;
}

template <typename CostOf>
DdpRow iterate(std::string_view policy, const workload::TrainingModel& model,
               const DdpOptions& options, double launch_us, uint64_t bucket_bytes, CostOf cost_of) {
  const std::vector<uint64_t> buckets = workload::gradient_buckets(model, bucket_bytes);
  const auto all = static_cast<double>(model.gradient_bytes());
  DdpRow row;
  row.policy = policy;
  row.buckets = buckets.size();
  row.compute_s = compute_time(model, options, launch_us);
  double filled = 0;
  double free = 0;
  double done = row.compute_s;
  for (const uint64_t bytes : buckets) {
    filled += static_cast<double>(bytes);
    const double backward = row.compute_s * (1 - kForwardShare) * filled / all;
    const double ready = options.overlap ? row.compute_s * kForwardShare + backward : row.compute_s;
    const Cost cost = cost_of(bytes);
    free = std::max(free, ready) + cost.busy;
    done = std::max(done, free + cost.rest);
    row.wire_s += cost.wire;
    row.seal_s += cost.seal;
    row.verify_s += cost.verify;
    row.messages += cost.messages;
    row.sealed_bytes += cost.sealed_bytes;
  }
  row.time_s = done;
  row.wait_s = done - row.compute_s;
  return row;
}

DdpRow row_of(std::string_view policy, const workload::TrainingModel& model,
              const Platform& platform, const DdpOptions& asked) {
  const DdpOptions options = completed(asked, platform);
  const bool nccl = options.fabric == Fabric::nccl;
  const bool study = policy == "study" || policy == "buckets";  // emulated by it, without CC
  const bool open = policy == "off" || study;
  const double launch_us = open ? platform.gpu.launch_off_us : platform.gpu.launch_cc_us;
  const uint64_t bucket = policy == "buckets" ? options.large_bucket_bytes : options.bucket_bytes;
  return iterate(policy, model, options, launch_us, bucket, [&](uint64_t bytes) {
    const auto size = static_cast<double>(bytes);
    if (policy == "off") return off_cost(size, options);
    if (nccl) return nccl_cost(policy, size, platform, options);
    if (study) return study_cost(size, options, study_message_s());
    if (policy == "stock") return stock_cost(size, platform, options);
    return sealane_cost(bytes, platform, options);
  });
}

Status check(const DdpOptions& options) {
  if (options.gpus_per_machine == 0) return usage_error("--gpus-per-machine: must be at least 1");
  const uint64_t most =
      options.fabric == Fabric::nccl ? uint64_t{kMachinesMax} * options.gpus_per_machine : kGpusMax;
  if (options.gpus == 0 || options.gpus > most) {
    return usage_error(fmt::format("--gpus: {} is not from 1 to {}", options.gpus, most));
  }
  if (options.workers == 0) return usage_error("--workers: must be at least 1");
  if (options.bucket_bytes == 0) return usage_error("--bucket: must be at least 1 byte");
  return {};
}

// As the enums have them.
constexpr std::array<std::string_view, 3> kLinks{"pcie", "nvlink", "nvlink-encrypted"};
constexpr std::array<std::string_view, 3> kSealers{"cpu", "copy-engine", "gpu-kernel"};

template <typename Kind, size_t N>
std::optional<Kind> find_kind(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Kind>(found - names.begin());
}

std::vector<DdpRow> rows_of(const workload::TrainingModel& model, const Platform& platform,
                            const DdpOptions& options, std::span<const std::string> policies) {
  std::vector<DdpRow> rows{row_of("off", model, platform, options)};
  for (const std::string& policy : policies) {
    if (policy != "off") rows.push_back(row_of(policy, model, platform, options));
  }
  for (DdpRow& row : rows) {
    row.slowdown = row.time_s / rows.front().time_s;
    row.loss_pct = 100 * (1 - 1 / row.slowdown);
  }
  return rows;
}

}  // namespace

double hops(double ranks) {
  return ranks < 2 ? 0 : std::min(2 * (ranks - 1), 4 * std::log2(ranks));
}

double open_wire(double bytes, const DdpOptions& options) {
  const double n = options.gpus;
  if (n < 2) return 0;
  double bus = options.link == Link::pcie ? options.constants.pcie_gb_per_s
                                          : options.constants.nvlink_gb_per_s;
  if (options.gpus > options.gpus_per_machine) bus = std::min(bus, options.network_gb_per_s);
  return ring_share(n) * gb(bytes) / bus + hops(n) * options.constants.hop_s;
}

std::optional<Link> find_link(std::string_view name) { return find_kind<Link>(kLinks, name); }
std::optional<Sealer> find_sealer(std::string_view name) {
  return find_kind<Sealer>(kSealers, name);
}
std::string_view to_string(Link link) { return kLinks[static_cast<size_t>(link)]; }
std::string_view to_string(Sealer sealer) { return kSealers[static_cast<size_t>(sealer)]; }

std::span<const std::string_view> ddp_policies(Fabric fabric) {
  return fabric == Fabric::nccl ? kNcclPolicies : kPolicies;
}

SealRate default_seal_rate(const Platform& platform, Sealer sealer) {
  switch (sealer) {
    case Sealer::cpu: {
      std::string source;
      for (const Parameter& parameter : platform.parameters) {
        if (parameter.key == "host.fast_aead_gb_per_s") source = parameter.source;
      }
      return {platform.host.fast_aead_gb_per_s, source};
    }
    case Sealer::copy_engine:
      return {platform.to_device.cc.link_gb_per_s,
              "assumed: a copy engine seals as fast as it moves"};
    case Sealer::gpu_kernel:
      break;
  }
  return {DdpConstants{}.gpu_kernel_gb_per_s, "assumed: nobody has published a GPU kernel for it"};
}

Result<std::vector<DdpRow>> estimate_ddp(const workload::TrainingModel& model,
                                         const Platform& platform, const DdpOptions& options,
                                         std::span<const std::string> policies) {
  if (Status status = check(options); !status) return status.error();
  std::vector<DdpRow> rows = rows_of(model, platform, options, policies);
  if (options.draws == 0) return rows;
  std::vector<std::vector<DdpRow>> all;
  for (uint32_t draw = 0; draw < options.draws; ++draw) {
    all.push_back(
        rows_of(model, drawn(platform, draw, options.draws), drawn(options, draw), policies));
  }
  set_range(rows, all, &DdpRow::time_s, &DdpRow::time_range);
  set_range(rows, all, &DdpRow::slowdown, &DdpRow::slowdown_range);
  set_range(rows, all, &DdpRow::loss_pct, &DdpRow::loss_range);
  return rows;
}

std::optional<double> needed_seal_rate(const workload::TrainingModel& model,
                                       const Platform& platform, const DdpOptions& options,
                                       double slowdown) {
  const double limit = slowdown * row_of("off", model, platform, options).time_s;
  const auto enough = [&](double rate) {
    DdpOptions with = options;
    with.seal_gb_per_s = rate;
    return row_of("sealane", model, platform, with).time_s <= limit;
  };
  double high = 10'000;
  if (!enough(high)) return std::nullopt;
  double low = 0.001;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

namespace {

// With which an iteration of `sealane` takes no longer than `limit_s`.
std::optional<uint32_t> workers_within(const workload::TrainingModel& model,
                                       const Platform& platform, const DdpOptions& options,
                                       double limit_s) {
  const auto enough = [&](uint32_t workers) {
    DdpOptions with = options;
    with.workers = workers;
    return row_of("sealane", model, platform, with).time_s <= limit_s;
  };
  if (!enough(kWorkersMax)) return std::nullopt;
  uint32_t low = 0;
  uint32_t high = kWorkersMax;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::optional<uint32_t> needed_workers(const workload::TrainingModel& model,
                                       const Platform& platform, const DdpOptions& options,
                                       double slowdown) {
  const double limit_s = slowdown * row_of("off", model, platform, options).time_s;
  return workers_within(model, platform, options, limit_s);
}

std::optional<NeededBucket> needed_bucket(const workload::TrainingModel& model,
                                          const Platform& platform, const DdpOptions& options,
                                          double slowdown) {
  // `off` stays with the buckets asked for: larger ones wait longer for the last of them.
  const double limit_s = slowdown * row_of("off", model, platform, options).time_s;
  std::optional<NeededBucket> best;
  DdpOptions with = options;
  for (; with.bucket_bytes <= kBucketBytesMax; with.bucket_bytes *= 2) {
    const auto workers = workers_within(model, platform, with, limit_s);
    if (workers && (!best || *workers < best->workers)) best = {with.bucket_bytes, *workers};
  }
  return best;
}

double study_message_s() {
  static const double found = [] {
    const workload::TrainingModel& model = *workload::find_training_model("gpt2-xl");
    DdpOptions options;  // as on the platforms with an H100, whose launches hide behind kernels
    options.compute_tflops = 25.6;
    options.constants.nvlink_gb_per_s = 71;
    const auto slowdown = [&](double message_s) {
      const auto time = [&](double each) {
        return iterate("study", model, options, 0, options.bucket_bytes,
                       [&](uint64_t bytes) {
                         return study_cost(static_cast<double>(bytes), options, each);
                       })
            .time_s;
      };
      return time(message_s) / time(0);
    };
    double low = 0;
    double high = 10;
    for (int i = 0; i < 80; ++i) {
      const double middle = (low + high) / 2;
      (slowdown(middle) < kStudyPoint ? low : high) = middle;
    }
    return high;
  }();
  return found;
}

}  // namespace sealane::estimate
