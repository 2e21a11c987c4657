// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/tamper.h"

#include <fmt/core.h>

#include <string>
#include <thread>
#include <vector>

#include "live/comm/communicator.h"
#include "live/comm/forwarding_fabric.h"
#include "seal/record.h"

namespace sealane::cli {
namespace {

// Everything passes unchanged but one bit of the first payload.
class FlippingFabric final : public ForwardingFabric {
 public:
  using ForwardingFabric::ForwardingFabric;

  void commit(uint32_t wire, size_t bytes) override {
    if (!flipped_ && bytes > RecordHeader::kBytes) {
      inner().slot(wire)[RecordHeader::kBytes] ^= 1;
      flipped_ = true;
    }
    inner().commit(wire, bytes);
  }

 private:
  bool flipped_ = false;
};

Status sum_once(JoinOptions options, uint64_t bytes) {
  if (options.self.rank == 0) {
    options.wrap_fabric = [](std::unique_ptr<Fabric> inner) {
      return std::make_unique<FlippingFabric>(std::move(inner));
    };
  }
  auto group = Communicator::create(std::move(options));
  if (!group) return group.error();
  std::vector<uint8_t> values(bytes, 1);
  const Buffer buffer({values});
  return (*group)->run(
      {Collective::all_reduce, ElementType::uint8, ReduceOperator::sum, 0, buffer, buffer});
}

}  // namespace

Status show_tampering(const JoinOptions& options, uint64_t bytes) {
  std::vector<Status> outcomes(options.self.size);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < options.self.size; ++rank) {
    ranks.emplace_back([&, rank] {
      JoinOptions mine = options;
      mine.self.rank = rank;
      outcomes[rank] = sum_once(std::move(mine), bytes);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  bool all = true;
  fmt::print("# one bit of rank 0's first record was flipped on its way\n");
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    all = all && !outcomes[rank];
    fmt::print("rank {}: {}\n", rank,
               outcomes[rank] ? "NOTICED NOTHING" : outcomes[rank].error().message);
  }
  if (all) return {};
  return crypto_error("a rank did not notice that a record was changed");
}

}  // namespace sealane::cli
