// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/tamper.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>
#include <thread>
#include <vector>

#include "base/figures.h"
#include "base/try.h"
#include "bench/collective_worker.h"
#include "comm/communicator.h"
#include "comm/forwarding_fabric.h"
#include "report/output.h"
#include "seal/record.h"

namespace sealane::bench {
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

// What became of a rank: of the operation whose record was changed, and of the one after it.
struct Outcome {
  Status first;
  uint64_t wrong = 0;  // elements of its result, if it had one
  Status next;

  bool fine() const { return wrong == 0 && (!first || !next); }
  std::string text() const {
    if (!first) return first.error().message;
    if (wrong > 0) return fmt::format("NOTICED NOTHING: {} elements of its sum are wrong", wrong);
    if (next) return "NOTICED NOTHING, and its group works on";
    return fmt::format("had its right result before; its next operation: {}", next.error().message);
  }
};

Outcome run_twice(JoinOptions options, const std::string& op, uint64_t bytes) {
  if (options.self.rank == 0) {
    options.wrap_fabric = [](std::unique_ptr<Fabric> inner) {
      return std::make_unique<FlippingFabric>(std::move(inner));
    };
  }
  auto group = Communicator::create(std::move(options));
  if (!group) return {group.error(), 0, group.error()};
  CollectiveJob job(**group);
  const WorkerCommand command{op, bytes, 1, true};
  const auto first = job.run_once(command);
  // One in which everybody depends on everybody.
  const auto next = job.run_once({"allreduce", bytes, 1, true});
  return {first ? Status() : first.error(), first ? *first : 0, next ? Status() : next.error()};
}

std::string text_of(const std::string& op, const std::vector<Outcome>& outcomes) {
  std::string text =
      fmt::format("# {}: one bit of rank 0's first record was flipped on its way\n", op);
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    text += wrapped(fmt::format("rank {}: {}", rank, outcomes[rank].text()), 8);
  }
  return text;
}

nlohmann::json json_of(const std::string& op, const std::vector<Outcome>& outcomes) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const Outcome& one : outcomes) {
    ranks.push_back({{"refused", !one.first},
                     {"wrong", one.wrong},
                     {"refused_next", !one.next},
                     {"words", one.text()}});
  }
  return {{"kind", "tamper"}, {"op", op}, {"ranks", ranks}};
}

}  // namespace

Status show_tampering(const JoinOptions& options, const std::string& op, uint64_t bytes,
                      const std::string& json) {
  std::vector<Outcome> outcomes(options.self.size);
  std::vector<std::jthread> ranks;
  for (uint32_t rank = 0; rank < options.self.size; ++rank) {
    ranks.emplace_back([&, rank] {
      JoinOptions mine = options;
      mine.self.rank = rank;
      outcomes[rank] = run_twice(std::move(mine), op, bytes);
    });
  }
  ranks.clear();  // joins
  bool refused = false;
  bool fine = true;
  for (const Outcome& one : outcomes) {
    refused = refused || !one.first;
    fine = fine && one.fine();
  }
  SEALANE_TRY(report::write_results(text_of(op, outcomes), json, json_of(op, outcomes)));
  if (refused && fine) return {};
  return crypto_error("a rank did not notice that a record was changed");
}

}  // namespace sealane::bench
