// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Training over NCCL in confidential mode. The GPUs of a machine and the links between them are one
// trust boundary; only what leaves a machine is sealed, and in a ring that is 2 (m-1)/m of the
// gradients per machine, not per GPU. It goes GPU, host memory, network, since GPUDirect RDMA is
// not available; NCCL runs one all-reduce after the other.
//
//   plain      NCCL's own sockets, nothing sealed on the network: what the crossings alone cost
//   tls        NCCL's TLS: the one proxy thread of each GPU writes and reads 16 KiB records
//   wireguard  a tunnel from machine to machine under NCCL's own sockets
//   sealane    the plugin: `workers` cores of a machine seal and open, and carry the crossings of
//              its GPUs as the runtime does
//
// Pure functions, any thread.

#include <algorithm>
#include <array>

#include "estimate/ddp_cost.h"
#include "platform/cost.h"

namespace sealane::estimate {
namespace {

constexpr double kSlice = 1 << 20;     // what NCCL's proxy hands on
constexpr double kRecord = 128 << 10;  // as the plugin seals
constexpr double kTlsRecord = 16 << 10;

struct Shares {
  double machines = 1;
  double local = 1;
  double crossed = 0;  // GB that leave a machine, and as many that come
  double of_gpu = 0;   // GB of them that are one GPU's
};

Shares share(double bytes, const DdpOptions& options) {
  Shares shares;
  shares.local = std::min(options.gpus, options.gpus_per_machine);
  shares.machines =
      static_cast<double>((options.gpus + options.gpus_per_machine - 1) / options.gpus_per_machine);
  shares.crossed = ring_share(shares.machines) * gb(bytes);
  shares.of_gpu = shares.crossed / shares.local;
  return shares;
}

// Stages work at the same time, and the slowest sets the pace; a slice passes all of them, in every
// hop between machines.
void run_stages(BucketCost& cost, double crossed, double machines,
                std::initializer_list<double> stages) {
  double all = 0;
  for (const double stage : stages) {
    cost.busy = std::max(cost.busy, stage);
    all += stage;
  }
  const double slice = std::min(1.0, gb(kSlice) / crossed);
  cost.busy += all * slice * hops(machines) / 2;
}

// The driver's own copies, a slice at a time, one direction.
double stock_crossing(const Platform& platform, const Path& path, double gigabytes) {
  const double slices = gigabytes / gb(kSlice);
  return slices *
         s(stock_copy_time(platform, path, HostMemory::pinned, static_cast<uint64_t>(kSlice)));
}

double link_crossing(const Path& path, double gigabytes) {
  return gigabytes / path.cc.link_gb_per_s + gigabytes / gb(kSlice) * path.cc.toll_us / 1e6;
}

}  // namespace

BucketCost nccl_cost(std::string_view policy, double bytes, const Platform& platform,
                     const DdpOptions& options) {
  const Shares shares = share(bytes, options);
  BucketCost cost;
  cost.busy = cost.wire = open_wire(bytes, options);
  if (shares.machines < 2) return cost;
  const double copies =
      2 * shares.crossed / platform.host.memcpy_gb_per_s;  // in and out of sockets
  const double network = shares.crossed / (options.network_gb_per_s * shares.local);
  const double stock_out = stock_crossing(platform, platform.to_host, shares.of_gpu);
  const double stock_in = stock_crossing(platform, platform.to_device, shares.of_gpu);
  cost.sealed_bytes = static_cast<uint64_t>(shares.of_gpu * 1e9);
  const auto messages = [&](double record) {
    return static_cast<uint64_t>(shares.of_gpu / gb(record)) + 1;
  };
  if (policy == "sealane") {
    const double rate =
        (options.seal_gb_per_s > 0 ? options.seal_gb_per_s : platform.host.fast_aead_gb_per_s) *
        options.workers;
    // Sealed for the network and opened from it; opened from the GPU and sealed for it.
    cost.seal = cost.verify = 2 * shares.crossed / rate;
    cost.messages = messages(kRecord);
    run_stages(cost, shares.crossed, shares.machines,
               {link_crossing(platform.to_host, shares.of_gpu),
                link_crossing(platform.to_device, shares.of_gpu), network,
                cost.seal + cost.verify + copies / options.workers});
    return cost;
  }
  double thread = copies / shares.local;  // of the one that polls
  double tunnel = 0;
  if (policy == "tls") {
    const double rate = options.constants.aes128_gain * platform.to_device.cc.stock_aead_gb_per_s;
    cost.seal = cost.verify = shares.of_gpu / rate;
    cost.messages = messages(kTlsRecord);
    thread += cost.seal + cost.verify;
  } else if (policy == "wireguard") {
    tunnel = shares.crossed / options.tunnel_gb_per_s;
    cost.seal = cost.verify = tunnel;
    cost.messages = messages(1420);
  } else {
    cost.sealed_bytes = 0;
  }
  run_stages(cost, shares.crossed, shares.machines, {stock_out, stock_in, network, thread, tunnel});
  return cost;
}

}  // namespace sealane::estimate
