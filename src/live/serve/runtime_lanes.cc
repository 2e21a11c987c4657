// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which lane carries a copy, and what those who seal ahead must know of it.

#include "base/log.h"
#include "live/serve/costs.h"
#include "live/serve/options.h"
#include "live/serve/runtime.h"

namespace sealane::serve {

Lane* Runtime::lane(int device, Direction direction, uint64_t reachable, const Choice& choice,
                    size_t& place) {
  const std::lock_guard lock(lanes_mutex_);
  const size_t first = kLanesPerDirection * static_cast<size_t>(direction);
  size_t best = 0;
  const auto work = [&](size_t i) {
    return lane_at(device, first + i)->pending() + choice.load[first + i];
  };
  for (size_t i = 0; i < kLanesPerDirection; ++i) {
    auto& one = lane_at(device, first + i);
    // A second lane only when the first is busy, and only if there is room for it.
    if (!one && (i == 0 || room_for_more_.load())) {
      one.reset(open_lane({device, next_lane(device), direction}, reachable));
      if (!one) no_room(i == 0);
    }
    if (!one) break;
    if (work(i) < work(best)) best = i;
    if (work(i) == 0) break;
  }
  place = first + best;
  // Nobody waits for company, but who has to wait does so where it may find some.
  const size_t wish = choice.neighbour;
  const bool usual = wish >= first && wish < first + kLanesPerDirection;
  if (usual && lane_at(device, wish) && work(best) > 0) place = wish;
  return lane_at(device, place).get();
}

std::unique_ptr<Lane>& Runtime::lane_at(int device, size_t place) {
  const size_t first = kLanesPerDevice * static_cast<size_t>(device);
  if (first + kLanesPerDevice > lanes_.size()) lanes_.resize(first + kLanesPerDevice);
  return lanes_[first + place];
}

// Those who watch tell lanes apart by it: one that is opened again has another.
int Runtime::next_lane(int device) {
  const auto of = static_cast<size_t>(device);
  if (of >= lanes_opened_.size()) lanes_opened_.resize(of + 1);
  return lanes_opened_[of]++;
}

// The same memory always travels in the same lane, or nobody could foresee what a lane is asked for
// next. Neighbours of the same size travel in different ones.
size_t Runtime::bulk_place(const Range& host) const {
  const size_t lanes = speculation_.policy->by_cost ? kBulkLanes : 1;  // the paper has one
  return kBulkLane + host.address / host.bytes % lanes;
}

// Where there is no room for it copies go with the others.
Lane* Runtime::bulk_lane(int device, const Range& host, uint64_t reachable, size_t& place) {
  const std::lock_guard lock(lanes_mutex_);
  place = bulk_place(host);
  auto& one = lane_at(device, place);
  if (!one && room_for_more_.load()) {
    const Carrier carrier{device, next_lane(device), Direction::to_device};
    one.reset(open_lane(carrier, reachable, make_ahead(device, carrier.lane)));
    if (!one) room_for_more_.store(false);
  }
  return one.get();
}

// Registered memory is read when the copy may go, not before. So is pinned memory that somebody may
// still write in the order of streams.
bool Runtime::sealed_ahead(const CopyAsked& asked, int device) {
  if (speculation_.policy == nullptr || asked.direction != Direction::to_device) return false;
  if (asked.bytes < speculation_.policy->bulk_bytes_min) return false;
  const auto block = host_memory_.find(reinterpret_cast<uint64_t>(asked.host));
  return !block || (!block->what.registered && settled(asked, device));
}

// Of large copies to the host the core knows that was told of them.
bool Runtime::settled(const CopyAsked& asked, int device) {
  if (unsettled_.any() || (reads_ != nullptr && !reads_->idle())) return false;
  const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  const std::lock_guard lock(lanes_mutex_);
  const auto& carrier = lane_at(device, bulk_place(host));
  const Ahead* const core = carrier ? carrier->ahead() : nullptr;
  for (const auto& lane : lanes_) {
    if (!lane || lane->direction() != Direction::to_host) continue;
    const bool writes = lane->any([&](const LaneRequest& request) {
      if (request.observer != nullptr && request.observer == core) return false;
      void* const to = request.deliver != nullptr ? request.deliver : request.host;
      return host.overlaps({reinterpret_cast<uint64_t>(to), request.bytes});
    });
    if (writes) return false;
  }
  return true;
}

Ahead* Runtime::make_ahead(int device, int lane) {
  AheadOptions made;
  made.device = device;
  made.lane = lane;
  made.policy = *speculation_.policy;
  made.costs = measure_costs(crew_.size());
  made.slot_bytes_max = options().slot_bytes_max / (speculation_.policy->by_cost ? kBulkLanes : 1);
  made.page_guards = options().page_guards;
  if (budget_ == nullptr) budget_ = make_slot_budget(crew_.cores(), options().slot_bytes_max);
  made.budget = budget_.get();
  aheads_.push_back(new Ahead(crew_, host_memory_, made));
  host_memory_.each([&](const auto& entry) { aheads_.back()->allocated(entry.range); });
  return aheads_.back();
}

// What was allocated may be guessed before any copy has touched it: a model is loaded in order.
void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  host_memory_.add(range, block);
  const std::lock_guard lock(lanes_mutex_);
  for (Ahead* ahead : aheads_) ahead->allocated(range);
}

// Tells whoever seals ahead of the copy: it may be sealed already, and what it writes may not be.
void Runtime::plan(const CopyAsked& asked, int device, const Lane& lane, LaneRequest& request) {
  if (speculation_.policy == nullptr || asked.bytes < speculation_.policy->bulk_bytes_min) return;
  const Range host{reinterpret_cast<uint64_t>(asked.host), asked.bytes};
  if (lane.ahead() != nullptr) {
    if (const auto flight = lane.ahead()->request(host, request.host)) {
      request.flight = *flight;
    } else {
      lane.ahead()->stop();  // it must see all or nothing
    }
    return;
  }
  if (asked.direction == Direction::to_device) return;
  Ahead* ahead = nullptr;
  {
    const std::lock_guard lock(lanes_mutex_);
    if (const auto& bulk = lane_at(device, bulk_place(host))) ahead = bulk->ahead();
  }
  if (ahead == nullptr) return;
  if (const auto flight = ahead->request_out(host)) {
    request.flight = *flight;
    request.observer = ahead;
  }
}

void Runtime::no_room(bool at_all) {
  room_for_more_.store(false);
  Room open = Room::open;
  if (at_all) room_.compare_exchange_strong(open, Room::full);
}

Lane* Runtime::open_lane(const Carrier& carrier, uint64_t reachable, Ahead* ahead) {
  LaneOptions wanted{carrier, ahead};
  if (options().coalesce) wanted.costs = crossing_costs();
  wanted.stripes = options().stripes;
  auto made = Lane::open(driver_, *this, wanted);
  if (!made) {
    SEALANE_LOG(info, "the driver has no context for another lane");
    return nullptr;
  }
  const Code code = made->probe(reachable);
  if (code == kSuccess) return made.release();
  made->close();
  ContextHandle context = nullptr;
  if (code == kForged && driver_.context_of(nullptr, context) == kSuccess) {
    fail(context, code);  // somebody on the bus is no reason to step aside: the error stands
    return nullptr;
  }
  step_aside("a context of ours cannot reach the program's device memory");
  return nullptr;
}

}  // namespace sealane::serve
