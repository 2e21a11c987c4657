// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/collective/choose.h"

#include <array>

namespace sealane {
namespace {

// Round numbers for one core of a current server; only their proportions matter here.
constexpr double kSealNsPerByte = 0.11;
constexpr double kOpenNsPerByte = 0.11;
constexpr double kFoldNsPerByte = 0.05;
constexpr double kRecordNs = 400;

struct WireCost {
  double ns_per_byte;
  double copy_ns_per_byte;  // from where it was verified to where it is wanted; a network hides it
  double hop_ns;            // until what one rank sent has woken the next
  double crowd_per_rank;    // extra cost per byte for each sender beyond the eighth at one receiver
};
constexpr WireCost kSharedMemory = {0.0, 0.05, 8'000, 0.0};
constexpr WireCost kNetwork = {0.35, 0.0, 30'000, 0.02};

struct Work {
  double hops = 0;
  double sealed = 0;  // bytes, as all that follow
  double opened = 0;
  double folded = 0;
  double copied = 0;
  double carried = 0;
  double records = 0;  // messages handled, whatever their size
  double senders = 1;  // at one receiver at a time
};

// Bytes a host's network carries for what its busiest rank sends: between ranks of one host
// nothing, but all ranks of the host use the one network. A ring leaves a host once.
double share_of_network(const Topology& topology, double n) {
  if (topology.shared_memory) return 1;
  const double local = topology.most_on_a_host;
  return local * (n - local) / (n - 1);
}

Work all_reduce_work(const Request& request, const Topology& topology) {
  const double n = request.size;
  const double bytes = static_cast<double>(request.bytes);
  const double most = bytes * (n - 1) / n;
  const bool shared_memory = topology.shared_memory;
  const double shared = share_of_network(topology, n);
  switch (request.algorithm) {
    case Algorithm::exchange:
      return {1,
              bytes,
              bytes * (n - 1),
              bytes * (n - 1),
              0,
              shared_memory ? bytes : bytes * (n - 1) * shared,
              n,
              n - 1};
    case Algorithm::hub:
      return {2, bytes, bytes * (n - 1), bytes * (n - 1), bytes, bytes * (n - 1), 2 * n, n - 1};
    case Algorithm::ring:
      return {2 * (n - 1), bytes, 2 * most, most, most, 2 * most, 4 * (n - 1), 1};
    default:
      return {2, bytes, 2 * most, most, most, 2 * most * shared, 4 * (n - 1), n - 1};
  }
}

}  // namespace

Duration estimate(const Request& request, const Topology& topology) {
  const WireCost& wire = topology.shared_memory ? kSharedMemory : kNetwork;
  const Work work = all_reduce_work(request, topology);
  const double crowd = work.senders > 8 ? wire.crowd_per_rank * (work.senders - 8) : 0;
  const double ns = work.hops * wire.hop_ns + work.sealed * kSealNsPerByte +
                    work.opened * kOpenNsPerByte + work.folded * kFoldNsPerByte +
                    work.copied * wire.copy_ns_per_byte +
                    work.carried * (wire.ns_per_byte + crowd) + work.records * kRecordNs;
  return Duration(static_cast<Duration::rep>(ns));
}

Algorithm choose(const Request& request, const Topology& topology) {
  if (possible(request)) return request.algorithm;
  // Collectives that do not reduce for all differ in hops only; networks with many ranks ring.
  if (request.collective != Collective::all_reduce) {
    return topology.shared_memory || request.size <= 16 ? Algorithm::direct : Algorithm::ring;
  }
  Request candidate = request;
  Algorithm best = Algorithm::direct;
  Duration best_cost = Duration::max();
  // The hub is for ranks that share a trusted machine, which nothing here can know: override only.
  for (const Algorithm algorithm : {Algorithm::exchange, Algorithm::direct, Algorithm::ring}) {
    candidate.algorithm = algorithm;
    if (!possible(candidate)) continue;
    const Duration cost = estimate(candidate, topology);
    if (cost >= best_cost) continue;
    best = algorithm;
    best_cost = cost;
  }
  return best;
}

}  // namespace sealane
