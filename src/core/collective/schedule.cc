// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/collective/schedule.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace sealane {
namespace {

constexpr uint64_t kBlockAlignment = 64;  // a multiple of every element's size, and a cache line

constexpr std::array<std::string_view, 5> kAlgorithms = {"auto", "exchange", "direct", "ring",
                                                         "hub"};

// Builds the schedule of one rank. Helpers append steps and return their index.
class Builder {
 public:
  explicit Builder(const Request& request) : request_(request) {}

  Schedule build() {
    const bool alone = request_.size == 1;
    if (request_.bytes == 0 && !alone) return of_nothing();
    switch (request_.collective) {
      case Collective::all_reduce:
        alone ? copy_own({0, 0, request_.bytes}) : all_reduce();
        break;
      case Collective::reduce_scatter:
        parts(true, false);
        alone ? copy_own(schedule_.blocks[0]) : reduce_scatter();
        break;
      case Collective::all_gather:
        parts(false, true);
        add({.kind = StepKind::copy, .block = rank()});
        if (!alone) all_gather(Operand::in, -1);
        break;
      case Collective::broadcast:
        broadcast();
        break;
      case Collective::reduce:
        reduce();
        break;
      case Collective::barrier:
        break;  // alone
      case Collective::send:
      case Collective::receive:
        point_to_point();
        break;
      case Collective::gather:
      case Collective::scatter:
      case Collective::all_to_all:
        SEALANE_CHECK(false, "a call that is only a name has no schedule");
    }
    return std::move(schedule_);
  }

 private:
  // A barrier, and every call without bytes: nothing but the records that say so.
  Schedule of_nothing() {
    schedule_.empty_records = true;
    if (request_.collective == Collective::send || request_.collective == Collective::receive) {
      point_to_point();
    } else {
      schedule_.blocks.assign(size(), Block{});
      gather_directly(Operand::in, -1);
    }
    return std::move(schedule_);
  }

  void point_to_point() {
    whole();
    if (request_.collective == Collective::send) {
      add({.kind = StepKind::send, .phase = Phase::point_to_point, .to = request_.root});
    } else {
      add({.kind = StepKind::receive,
           .phase = Phase::point_to_point,
           .from = request_.root,
           .origin = request_.root});
    }
  }

  // An empty record on the pair's lane; its block is behind all others.
  void say(uint32_t to) {
    add({.kind = StepKind::send,
         .phase = Phase::agreement,
         .block = static_cast<uint32_t>(schedule_.blocks.size()) - 1,
         .to = to});
  }
  void hear(uint32_t from) {
    add({.kind = StepKind::receive,
         .phase = Phase::agreement,
         .block = static_cast<uint32_t>(schedule_.blocks.size()) - 1,
         .from = from,
         .origin = from});
  }

  uint32_t rank() const { return request_.rank; }
  uint32_t size() const { return request_.size; }
  uint32_t before(uint32_t hops) const { return (rank() + size() - hops % size()) % size(); }
  uint32_t beyond(uint32_t hops) const { return (rank() + hops) % size(); }

  int32_t add(Step step) {
    schedule_.steps.push_back(step);
    return static_cast<int32_t>(schedule_.steps.size()) - 1;
  }

  void whole() { schedule_.blocks = {{0, 0, request_.bytes}}; }

  void copy_own(Block block) {
    schedule_.blocks = {block};
    add({.kind = StepKind::copy});
  }

  // One part per rank; a side that holds only this rank's part has it at 0.
  void parts(bool all_in, bool all_out) {
    for (uint64_t part = 0; part < size(); ++part) {
      schedule_.blocks.push_back({all_in ? part * request_.bytes : 0,
                                  all_out ? part * request_.bytes : 0, request_.bytes});
    }
  }

  // [start, end) cut into one aligned block per rank; the last ones may be short or empty.
  void cut(uint64_t start, uint64_t end) {
    const uint64_t unit = size() * kBlockAlignment;
    const uint64_t units = (end - start) / unit + ((end - start) % unit != 0 ? 1 : 0);
    const uint64_t part = units * kBlockAlignment;
    for (uint32_t i = 0; i < size(); ++i) {
      const uint64_t from = std::min(start + i * part, end);
      const uint64_t to = std::min(from + part, end);
      schedule_.blocks.push_back({from, from, to - from});
    }
  }

  void all_reduce() {
    switch (request_.algorithm) {
      case Algorithm::exchange:
        whole();
        return size() == 2 ? exchange_with_one() : exchange_with_all();
      case Algorithm::hub:
        whole();
        return hub();
      case Algorithm::ring:
        return for_ring_segments(request_.bytes, [&](uint64_t start, uint64_t end) {
          const uint32_t first = static_cast<uint32_t>(schedule_.blocks.size());
          cut(start, end);
          ring_gather(first, Operand::out, ring_reduce(first));
        });
      default:
        cut(0, request_.bytes);
        gather_directly(Operand::out, reduce_directly());
    }
  }

  void reduce_scatter() {
    if (request_.algorithm != Algorithm::ring) {
      reduce_directly();
      return;
    }
    for_part_segments([&](uint32_t first) { ring_reduce(first); });
  }

  void all_gather(Operand operand, int32_t after) {
    if (request_.algorithm != Algorithm::ring) return gather_directly(operand, after);
    for_part_segments([&](uint32_t first) { ring_gather(first, operand, after); });
  }

  // 2 ranks: both fold what the other sent; rank 0's elements are the first operand on both sides.
  void exchange_with_one() {
    const uint32_t peer = 1 - rank();
    const int32_t sent = add({.kind = StepKind::send, .phase = Phase::exchange, .to = peer});
    add({.kind = StepKind::fold,
         .phase = Phase::exchange,
         .from = peer,
         .origin = peer,
         .operand = Operand::in,
         .record_first = peer < rank(),
         .last = true,
         .after = sent});
  }

  // Everybody adds in the order of ranks, so `out` starts with rank 0's and the own part waits.
  void exchange_with_all() {
    int32_t chain = add({.kind = StepKind::publish,
                         .phase = Phase::exchange,
                         .to = kEveryone,
                         .operand = Operand::in});
    if (rank() != 0) chain = add({.kind = StepKind::stash, .after = chain});
    for (uint32_t other = 0; other < size(); ++other) {
      const bool last = other + 1 == size();
      if (other == rank()) {
        if (rank() != 0) chain = add({.kind = StepKind::fold_stash, .last = last, .after = chain});
        continue;
      }
      const Operand operand = rank() == 0 && other == 1 ? Operand::in : Operand::out;
      chain = add({.kind = other == 0 ? StepKind::receive : StepKind::fold,
                   .phase = Phase::exchange,
                   .from = other,
                   .origin = other,
                   .from_broadcast = true,
                   .broadcast_lane = true,
                   .operand = operand,
                   .last = last,
                   .after = chain});
    }
  }

  void hub() {
    if (rank() != 0) {
      add({.kind = StepKind::send, .phase = Phase::to_hub, .to = 0});
      add({.kind = StepKind::receive,
           .phase = Phase::all_gather,
           .from = 0,
           .origin = 0,
           .from_broadcast = true,
           .broadcast_lane = true});
      return;
    }
    int32_t chain = -1;
    for (uint32_t other = 1; other < size(); ++other) {
      chain = add({.kind = StepKind::fold,
                   .phase = Phase::to_hub,
                   .from = other,
                   .origin = other,
                   .operand = other == 1 ? Operand::in : Operand::out,
                   .last = other + 1 == size(),
                   .after = chain});
    }
    add({.kind = StepKind::publish,
         .phase = Phase::all_gather,
         .to = kEveryone,
         .operand = Operand::out,
         .after = chain});
  }

  // Block b is reduced by rank b: own part first, then those of b+1, b+2, … At each moment every
  // rank sends to another one. Returns the step that completes the own block.
  int32_t reduce_directly() {
    for (uint32_t hops = 1; hops < size(); ++hops) {
      add({.kind = StepKind::send,
           .phase = Phase::reduce_scatter,
           .block = before(hops),
           .to = before(hops)});
    }
    int32_t chain = -1;
    for (uint32_t hops = 1; hops < size(); ++hops) {
      const uint32_t from = beyond(hops);
      chain = add({.kind = StepKind::fold,
                   .phase = Phase::reduce_scatter,
                   .block = rank(),
                   .from = from,
                   .origin = from,
                   .operand = hops == 1 ? Operand::in : Operand::out,
                   .last = hops + 1 == size(),
                   .after = chain});
    }
    return chain;
  }

  void gather_directly(Operand operand, int32_t after) {
    add({.kind = StepKind::publish,
         .phase = Phase::all_gather,
         .block = rank(),
         .to = kEveryone,
         .operand = operand,
         .after = after});
    for (uint32_t hops = 1; hops < size(); ++hops) {
      const uint32_t from = before(hops);
      add({.kind = StepKind::receive,
           .phase = Phase::all_gather,
           .block = from,
           .from = from,
           .origin = from,
           .from_broadcast = true,
           .broadcast_lane = true});
    }
  }

  // Block b starts at rank b+1 and is complete at rank b. Returns the step that completes the own.
  int32_t ring_reduce(uint32_t first_block) {
    const uint32_t left = before(1);
    const uint32_t right = beyond(1);
    add({.kind = StepKind::send,
         .phase = Phase::reduce_scatter,
         .block = first_block + left,
         .to = right});
    for (uint32_t hops = 2; hops < size(); ++hops) {
      add({.kind = StepKind::relay,
           .phase = Phase::reduce_scatter,
           .block = first_block + before(hops),
           .from = left,
           .to = right,
           .origin = left,
           .record_first = true});
    }
    return add({.kind = StepKind::fold,
                .phase = Phase::reduce_scatter,
                .block = first_block + rank(),
                .from = left,
                .origin = left,
                .operand = Operand::in,
                .record_first = true,
                .last = true});
  }

  void ring_gather(uint32_t first_block, Operand operand, int32_t after) {
    const uint32_t left = before(1);
    const uint32_t right = beyond(1);
    add({.kind = StepKind::publish,
         .phase = Phase::all_gather,
         .block = first_block + rank(),
         .to = right,
         .operand = operand,
         .after = after});
    for (uint32_t hops = 1; hops < size(); ++hops) {
      const bool end = hops + 1 == size();
      add({.kind = end ? StepKind::receive : StepKind::forward,
           .phase = Phase::all_gather,
           .block = first_block + before(hops),
           .from = left,
           .to = end ? kNobody : right,
           .origin = before(hops),
           .broadcast_lane = true});
    }
  }

  // A ring moves only while some wire has room for one more record, so at most one record less
  // than a wire holds may be under way per rank: longer messages go round in segments.
  uint64_t segment_bytes() const {
    return uint64_t{std::max(2u, request_.channel_records) - 1} * request_.record_bytes;
  }

  template <typename Body>
  void for_ring_segments(uint64_t bytes, Body body) {
    const uint64_t step = segment_bytes() * size();
    for (uint64_t start = 0; start < bytes; start += step) {
      body(start, std::min(start + step, bytes));
    }
  }

  template <typename Body>
  void for_part_segments(Body body) {
    const std::vector<Block> whole_parts = std::move(schedule_.blocks);
    schedule_.blocks = {whole_parts[rank()]};  // the local copy, if there is one, is of this block
    for (Step& step : schedule_.steps) step.block = 0;
    for (uint64_t start = 0; start < request_.bytes; start += segment_bytes()) {
      const uint64_t bytes = std::min(segment_bytes(), request_.bytes - start);
      const uint32_t first = static_cast<uint32_t>(schedule_.blocks.size());
      for (const Block& part : whole_parts) {
        schedule_.blocks.push_back({part.in_offset + start, part.out_offset + start, bytes});
      }
      body(first);
    }
  }

  // The root hears that all others take it for the root.
  void broadcast() {
    whole();
    schedule_.blocks.push_back({});
    const uint32_t root = request_.root;
    if (rank() != root) say(root);
    const bool ring = request_.algorithm == Algorithm::ring;
    const bool end = beyond(1) == root;
    if (rank() == root) {
      add({.kind = StepKind::copy});
      if (size() > 1) {
        add({.kind = StepKind::publish,
             .phase = Phase::all_gather,
             .to = ring ? beyond(1) : kEveryone,
             .operand = Operand::in});
      }
      for (uint32_t hops = 1; hops < size(); ++hops) hear(beyond(hops));
    } else if (ring) {
      add({.kind = end ? StepKind::receive : StepKind::forward,
           .phase = Phase::all_gather,
           .from = before(1),
           .to = end ? kNobody : beyond(1),
           .origin = root,
           .broadcast_lane = true});
    } else {
      add({.kind = StepKind::receive,
           .phase = Phase::all_gather,
           .from = root,
           .origin = root,
           .from_broadcast = true,
           .broadcast_lane = true});
    }
  }

  // A chain that ends at the root: whoever is not the root needs no memory for partial sums, and
  // hears from the root that it is one.
  void reduce() {
    whole();
    schedule_.blocks.push_back({});
    if (rank() == request_.root) {
      for (uint32_t hops = 1; hops < size(); ++hops) say(beyond(hops));
    } else {
      hear(request_.root);
    }
    const uint32_t left = before(1);
    const uint32_t right = beyond(1);
    if (size() == 1) {
      add({.kind = StepKind::copy});
    } else if (left == request_.root) {
      add({.kind = StepKind::send, .phase = Phase::reduce_scatter, .to = right});
    } else if (rank() == request_.root) {
      add({.kind = StepKind::fold,
           .phase = Phase::reduce_scatter,
           .from = left,
           .origin = left,
           .operand = Operand::in,
           .record_first = true,
           .last = true});
    } else {
      add({.kind = StepKind::relay,
           .phase = Phase::reduce_scatter,
           .from = left,
           .to = right,
           .origin = left,
           .record_first = true});
    }
  }

  const Request& request_;
  Schedule schedule_;
};

}  // namespace

std::string_view to_string(Collective collective) {
  constexpr std::array<std::string_view, 11> names = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",    "barrier",
      "send",       "receive",        "gather",     "scatter",   "all_to_all"};
  return names[static_cast<size_t>(collective)];
}

std::string_view to_string(Algorithm algorithm) {
  return kAlgorithms[static_cast<size_t>(algorithm)];
}

Result<Algorithm> parse_algorithm(std::string_view name) {
  for (size_t i = 0; i < kAlgorithms.size(); ++i) {
    if (kAlgorithms[i] == name) return static_cast<Algorithm>(i);
  }
  return usage_error(
      concat("unknown algorithm '", name, "'; there are: auto, exchange, direct, ring, hub"));
}

bool possible(const Request& request) {
  const bool reduces_for_all = request.collective == Collective::all_reduce;
  switch (request.algorithm) {
    case Algorithm::automatic:
      return false;
    case Algorithm::exchange:
      return reduces_for_all && (request.size <= 2 || request.bytes <= request.record_bytes);
    case Algorithm::hub:
      return reduces_for_all;
    case Algorithm::direct:
    case Algorithm::ring:
      return true;
  }
  return false;
}

Schedule make_schedule(const Request& request) {
  SEALANE_CHECK(possible(request), "schedule asked for that cannot be");
  SEALANE_CHECK(request.rank < request.size && request.root < request.size, "no such rank");
  SEALANE_CHECK(request.record_bytes % kBlockAlignment == 0, "records cut elements");
  return Builder(request).build();
}

}  // namespace sealane
