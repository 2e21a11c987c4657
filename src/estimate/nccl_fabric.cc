// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Training over NCCL in confidential mode. The GPUs of a machine and the links between them are one
// trust boundary; only what leaves a machine is sealed, and in a ring or a tree that is 2 (m-1)/m
// of the gradients per machine, not per GPU. It goes GPU, host memory, network, since GPUDirect
// RDMA is not available; NCCL runs one all-reduce after the other.
//
//   plain      NCCL's own sockets, nothing sealed on the network: what the crossings alone cost
//   tls        NCCL's TLS: the one proxy thread of each GPU writes and reads 16 KiB records
//   wireguard  a tunnel from machine to machine under NCCL's own sockets
//   sealane    the plugin: `workers` cores of a machine seal and open, and carry the crossings of
//              its GPUs as the runtime does
//
// An all-reduce takes as long as its slowest stage needs for all bytes, and before that its first
// chunk has to pass all stages of every hop, one hop after the other: 2 (m-1) in a ring, 2 log2 m
// in a tree. Which of the two, and how large a chunk is, NCCL decides without knowing of sealing,
// so it is decided here as NCCL does (choose_schedule()).
//
// Pure functions, any thread.

#include <algorithm>
#include <cmath>

#include "estimate/ddp_cost.h"
#include "platform/cost.h"

namespace sealane::estimate {
namespace {

constexpr double kRecord = 128 << 10;  // as the plugin seals
constexpr double kTlsRecord = 16 << 10;

// NCCL 2.30, protocol LL128: src/graph/tuning.cc has the times, which it adds up for every
// candidate and takes the least, and the share of the bus that carries data; src/enqueue.cc has the
// chunks.
constexpr double kBegin_s = 14.0e-6;
constexpr double kRingHop_s = 4.0e-6;
constexpr double kTreeHop_s = 8.5e-6;
constexpr double kRingInside_s = 1.9e-6;  // from GPU to GPU by NVLink
constexpr double kTreeInside_s = 1.25e-6;
constexpr double kRingInsidePcie_s = 2.5e-6;
constexpr double kTreeInsidePcie_s = 1.9e-6;
constexpr double kRingBus = 0.92;
constexpr double kTreeBus = 0.92 * 120 / 128;
constexpr double kStep = 512 << 10;  // a channel's chunk at most
constexpr double kTreeChunkMin = 32 << 10;
constexpr double kTreeChunkLarge = 128 << 10;
constexpr double kChannelsPerGpu = 2;  // assumed: 16 on a machine of 8 GPUs

struct Shares {
  double gpus = 1;
  double machines = 1;
  double local = 1;
  double crossed = 0;  // GB that leave a machine, and as many that come
};

Shares share(double bytes, const DdpOptions& options) {
  Shares shares;
  shares.gpus = options.gpus;
  shares.local = std::min(options.gpus, options.gpus_per_machine);
  shares.machines =
      static_cast<double>((options.gpus + options.gpus_per_machine - 1) / options.gpus_per_machine);
  shares.crossed = ring_share(shares.machines) * gb(bytes);
  return shares;
}

// --- what NCCL does

struct NcclSchedule {
  double hops = 0;   // between machines, one after the other
  double hop_s = 0;  // what NCCL and the network take for each
  double chunk = 0;  // bytes that a channel hands on at a time
};

// A tree's chunks are halved until there are enough of them to fill it.
double tree_chunk(double bytes, const Shares& shares) {
  const double depth = 1 + std::floor(std::log2(shares.machines)) + 0.1 * shares.local;
  const double of_channel = bytes / (kChannelsPerGpu * shares.local);
  double chunk = kStep;
  while (of_channel / chunk < depth * 64 / shares.local && chunk > kTreeChunkLarge) chunk /= 2;
  while (of_channel / chunk < depth * 16 / shares.local && chunk > kTreeChunkMin) chunk /= 2;
  return chunk;
}

NcclSchedule choose_schedule(double bytes, const DdpOptions& options, const Shares& shares) {
  const bool pcie = options.link == Link::pcie;
  const double link = pcie ? options.constants.pcie_gb_per_s : options.constants.nvlink_gb_per_s;
  const double bus = std::min(link, options.network_gb_per_s);
  const double outside = 2 * (shares.machines - 1);
  const double levels = std::floor(std::log2(shares.machines));
  const double ring =
      kBegin_s + (2 * (shares.gpus - 1) - outside) * (pcie ? kRingInsidePcie_s : kRingInside_s) +
      outside * kRingHop_s + ring_share(shares.gpus) * gb(bytes) / (kRingBus * bus);
  const double tree = kBegin_s +
                      2 * (shares.local - 1) * (pcie ? kTreeInsidePcie_s : kTreeInside_s) +
                      2 * levels * kTreeHop_s + 2 * gb(bytes) / (kTreeBus * bus);
  if (tree < ring) return {2 * levels, kTreeHop_s, tree_chunk(bytes, shares)};
  const double part = bytes / (shares.gpus * kChannelsPerGpu * shares.local);
  return {outside, kRingHop_s, std::min(kStep, part)};
}

// --- what each policy adds

// Seconds of a machine for bytes that leave it while as many come.
struct NcclStages {
  double out = 0;      // GPU to host
  double in = 0;       // host to GPU
  double network = 0;  // what it carries
  double cores = 0;    // sealing, opening, copies in and out of sockets
  double tunnel = 0;

  double longest() const { return std::max({out, in, network, cores, tunnel}); }
  double sum() const { return out + in + network + cores + tunnel; }
};

// The driver's own copies, one direction.
double stock_crossing(const Platform& platform, const Path& path, double gigabytes, double copy) {
  return gigabytes / gb(copy) *
         s(stock_copy_time(platform, path, HostMemory::pinned, static_cast<uint64_t>(copy)));
}

double link_crossing(const Path& path, double gigabytes, double copy) {
  return gigabytes / path.cc.link_gb_per_s + gigabytes / gb(copy) * path.cc.toll_us / 1e6;
}

class NcclPolicy {
 public:
  NcclPolicy(std::string_view name, const Platform& platform, const DdpOptions& options)
      : name_(name), platform_(platform), options_(options) {}

  // `crossed` GB in copies of that many bytes, by so many cores, if it is the cores that seal.
  NcclStages stages(double crossed, double copy, double cores, double local) const {
    const double of_gpu = crossed / local;
    const double copied = 2 * crossed / platform_.host.memcpy_gb_per_s;
    NcclStages all;
    all.network = crossed / (options_.network_gb_per_s * local);
    if (name_ == "sealane") {
      all.out = link_crossing(platform_.to_host, of_gpu, copy);
      all.in = link_crossing(platform_.to_device, of_gpu, copy);
      all.cores = (4 * crossed / core_rate() + copied) / cores;
      return all;
    }
    all.out = stock_crossing(platform_, platform_.to_host, of_gpu, copy);
    all.in = stock_crossing(platform_, platform_.to_device, of_gpu, copy);
    all.cores = copied / local;  // of the threads that poll, one per GPU
    if (name_ == "tls") all.cores += 2 * of_gpu / tls_rate();
    if (name_ == "wireguard") all.tunnel = crossed / options_.tunnel_gb_per_s;
    return all;
  }

  // Sealed for the network, and as much opened; with sealane's GPUs' crossings, which it carries.
  double seal_s(double crossed, double local) const {
    if (name_ == "sealane") return 2 * crossed / (core_rate() * options_.workers);
    if (name_ == "tls") return crossed / local / tls_rate();
    return name_ == "wireguard" ? crossed / options_.tunnel_gb_per_s : 0;
  }
  double record_bytes() const {  // 0: nothing is sealed
    if (name_ == "sealane") return kRecord;
    if (name_ == "tls") return kTlsRecord;
    return name_ == "wireguard" ? 1420 : 0;
  }

 private:
  double core_rate() const {
    return options_.seal_gb_per_s > 0 ? options_.seal_gb_per_s : platform_.host.fast_aead_gb_per_s;
  }
  double tls_rate() const {
    return options_.constants.aes128_gain * platform_.to_device.cc.stock_aead_gb_per_s;
  }

  std::string_view name_;
  const Platform& platform_;
  const DdpOptions& options_;
};

}  // namespace

BucketCost nccl_cost(std::string_view policy, double bytes, const Platform& platform,
                     const DdpOptions& options) {
  const Shares shares = share(bytes, options);
  BucketCost cost;
  cost.busy = cost.wire = open_wire(bytes, options);
  if (shares.machines < 2) return cost;
  const NcclPolicy way(policy, platform, options);
  const NcclSchedule schedule = choose_schedule(bytes, options, shares);
  const double channels = kChannelsPerGpu * shares.local;
  const double copy = kChannelsPerGpu * schedule.chunk;  // of a GPU, at a time
  const NcclStages all = way.stages(shares.crossed, copy, options.workers, shares.local);
  // A chunk is sealed by one core: more of them than channels do not make a hop shorter.
  const NcclStages hop = way.stages(gb(copy) * shares.local, copy,
                                    std::min<double>(options.workers, channels), shares.local);
  cost.busy = std::max(cost.busy, all.longest()) + schedule.hops * (schedule.hop_s + hop.sum());
  cost.seal = cost.verify = way.seal_s(shares.crossed, shares.local);
  if (const double record = way.record_bytes(); record > 0) {
    const double of_gpu = shares.crossed / shares.local;
    cost.sealed_bytes = static_cast<uint64_t>(of_gpu * 1e9);
    cost.messages = static_cast<uint64_t>(of_gpu / gb(record)) + 1;
  }
  return cost;
}

}  // namespace sealane::estimate
