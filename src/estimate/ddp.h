// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One iteration of data-parallel training: the backward pass fills buckets, each is all-reduced
// when it is full and the one before it is done, and the step ends when the last one has arrived.
//
//   off      ring all-reduce at the bus bandwidth people measure
//   study    every hop of every bucket sealed and verified, message by message, at the cost of the
//            GPU-TEE study's emulated path: calibrated on its GPT-2-XL point, see study_message()
//   buckets  the same with large buckets, which is what the study recommends
//   stock    today's confidential mode: each hop crosses to the host and back by the driver
//   sealane  the schedules of core/collective. CPU cores seal: a hub in the CPU's trusted VM, and a
//            sealed ring between machines. The copy engine or a GPU kernel seals: a sealed ring of
//            all GPUs. Records are sealed, moved, added and opened in a pipeline
//
// Kernels run one after the other while the host launches the next: a pass takes as long as the
// slower of the two. In CC mode (stock, sealane, all of NCCL's but off) a launch costs more.
//
// With Fabric::nccl the program stays with NCCL, and only what leaves a machine is sealed: off,
// plain, tls, wireguard, sealane; nccl_fabric.cc says what they are.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "estimate/interval.h"
#include "estimate/rests_on.h"
#include "platform/platform.h"
#include "workload/serving/serving.h"
#include "workload/training.h"

namespace sealane::estimate {

enum class Link : uint8_t {
  pcie,              // NCCL over PCIe; with CC on through the host
  nvlink,            // unprotected, so CC goes through the host as well
  nvlink_encrypted,  // Blackwell: CC stays on it, and Sealane steps aside
};
enum class Sealer : uint8_t { cpu, copy_engine, gpu_kernel };
enum class Fabric : uint8_t { sealane, nccl };
std::optional<Link> find_link(std::string_view name);
std::optional<Sealer> find_sealer(std::string_view name);
std::string_view to_string(Link link);
std::string_view to_string(Sealer sealer);

// What no platform file says. Drawn like the numbers of one, with the spreads of ddp_draws.cc.
struct DdpConstants {
  double nvlink_gb_per_s = 0;                  // bus; 0: the platform's
  double pcie_gb_per_s = 19.5;                 // bus, the same for PCIe-class links
  double encrypted_nvlink = 156.0 / 185;       // four B200, NCCL, article on arXiv 2608.26575
  double fold_gb_per_s = 20;                   // assumed: one core adds what is in its cache
  double gpu_kernel_gb_per_s = 30;             // assumed: nobody has published one that seals
  double hop_s = 5e-6;                         // assumed: one step of a collective
  double aes128_gain = 1.2;                    // assumed: over AES-256 in the same library
  double launches_per_tensor = 3;              // assumed: one forward, two backward
  double dispatch_us = workload::kDispatchUs;  // the framework's work before each launch
};

struct DdpOptions {
  Fabric fabric = Fabric::sealane;
  uint32_t gpus = 4;
  uint32_t gpus_per_machine = 8;
  uint64_t batch = 0;  // samples per GPU; 0: the model's usual
  uint64_t bucket_bytes = workload::kBucketBytesDefault;
  uint64_t large_bucket_bytes = 1024_MiB;  // of `buckets`
  Link link = Link::nvlink;
  double network_gb_per_s = 50;   // per GPU, between machines
  double tunnel_gb_per_s = 1.25;  // of `wireguard`, between two machines, each way. Assumed: 10
                                  // Gbit/s; public tests of the kernel's reach 8 on such a network
  bool overlap = true;            // with the backward pass
  Sealer sealer = Sealer::cpu;
  uint32_t workers = 16;      // per machine, if CPU cores seal
  double seal_gb_per_s = 0;   // of a core, a copy engine, a GPU; 0: default_seal_rate()
  double compute_tflops = 0;  // what one GPU reaches; 0: the platform's
  DdpConstants constants;
  uint32_t draws = 0;  // of platforms; 0: predictions without their uncertainty

  // How far those above may be off (platform/spread.h); 0 for what the planner knows.
  double network_spread = 0.20;
  double tunnel_spread = 0.30;
};

// Draw `index` of `options.draws`, to go with that draw of the platform.
DdpOptions drawn(const DdpOptions& options, uint32_t index);

struct DdpRow {
  std::string policy;
  double time_s = 0;  // of an iteration
  double slowdown = 1;
  double loss_pct = 0;  // of throughput
  uint64_t buckets = 0;
  uint64_t messages = 0;      // sealed by one GPU, or for it, in an iteration
  uint64_t sealed_bytes = 0;  // likewise
  double compute_s = 0;
  double wire_s = 0;  // what follows may overlap with compute and with each other
  double seal_s = 0;
  double verify_s = 0;
  double wait_s = 0;  // time beyond compute

  // Four out of five (interval.h); all zero if nothing was drawn.
  Interval time_range;
  Interval slowdown_range;
  Interval loss_range;
};

std::span<const std::string_view> ddp_policies(Fabric fabric = Fabric::sealane);

// Rate of one sealer on the platform, GB/s, and where that comes from.
struct SealRate {
  double gb_per_s;
  std::string source;
};
SealRate default_seal_rate(const Platform& platform, Sealer sealer);

// The policies must be among ddp_policies(); `off` comes first, asked for or not. A usage error if
// the options make no sense.
Result<std::vector<DdpRow>> estimate_ddp(const workload::TrainingModel& model,
                                         const Platform& platform, const DdpOptions& options,
                                         std::span<const std::string> policies);

// The least rate of one sealer with which `sealane` takes at most `slowdown` times as long as
// `off`; nothing if no rate is enough.
std::optional<double> needed_seal_rate(const workload::TrainingModel& model,
                                       const Platform& platform, const DdpOptions& options,
                                       double slowdown);

// The least number of cores per machine with which `sealane` does; nothing if no number is enough.
std::optional<uint32_t> needed_workers(const workload::TrainingModel& model,
                                       const Platform& platform, const DdpOptions& options,
                                       double slowdown);

// The bucket with which the fewest cores are enough, and how many: of the size asked for and its
// doubles up to a GiB, the smallest of those that are equal; `off` has the size asked for. Nothing
// if none is enough with any.
struct NeededBucket {
  uint64_t bytes = 0;
  uint32_t workers = 0;
};
std::optional<NeededBucket> needed_bucket(const workload::TrainingModel& model,
                                          const Platform& platform, const DdpOptions& options,
                                          double slowdown);

// needed_workers() with its interval, or that of needed_seal_rate(). No number is infinitely many;
// nothing was drawn: all zero.
Interval needed_workers_range(const workload::TrainingModel& model, const Platform& platform,
                              const DdpOptions& options, double slowdown);
Interval needed_seal_rate_range(const workload::TrainingModel& model, const Platform& platform,
                                const DdpOptions& options, double slowdown);

// What the slowdowns rest on, `off` first (rests_on.h).
std::vector<Unknown> ddp_unknowns(const workload::TrainingModel& model, const Platform& platform,
                                  const DdpOptions& options,
                                  const std::vector<std::string>& policies);

// What sealing and verifying one message cost in the study's path: the value for which GPT-2-XL on
// four GPUs with 25 MiB buckets is 41.6 times slower, the published figure.
constexpr double kStudyPoint = 41.6;
double study_message_s();

}  // namespace sealane::estimate
