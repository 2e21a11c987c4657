// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. What there is no order among is spread over the lanes; behind the last
// copy that a lane has of it, and only there, the stream waits for that lane.

#include <algorithm>

#include "live/serve/runtime.h"

namespace sealane::serve {

Route Runtime::copy_together(std::span<const CopyAsked> batch) {
  if (batch.size() == 1) return copy(batch.front());
  try {
    return offer_together(batch);
  } catch (const std::exception& problem) {
    step_aside(problem.what());
    return Route::passed_aside;
  }
}

Route Runtime::offer_together(std::span<const CopyAsked> batch) {
  const std::shared_lock carrying(carrying_);
  std::vector<Carriage> all(batch.size());
  const Route route = prepare_all(batch, all);
  if (route != Route::carried) return route;

  const std::lock_guard lock(all.front().stream->mutex);
  Load gated{};
  const Code code = put_gates(batch, all, gated);
  for (size_t place = 0; place < kLanesPerDevice; ++place) {
    Lane* carrier = nullptr;
    std::vector<LaneRequest> requests;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (all[i].place != place) continue;
      if (gated[place] == 0) {
        give_back(all[i]);
        continue;
      }
      carrier = all[i].lane;
      plan(batch[i], all[i].stream->device, *carrier, all[i].request);
      requests.push_back(std::move(all[i].request));
    }
    if (carrier != nullptr) carrier->ask(std::move(requests));
  }
  // Where a gate could not be put, all that has one is carried and the driver does it once more: no
  // copy of a batch changes what another one reads.
  return code == kSuccess ? Route::carried : Route::passed;
}

// Copies that continue each other, and are small enough to travel as one, get the same lane.
Route Runtime::prepare_all(std::span<const CopyAsked> batch, std::span<Carriage> all) {
  Choice choice;
  uint64_t together = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool continues =
        i > 0 && options().coalesce && batch[i - 1].direction == batch[i].direction &&
        batch[i - 1].device_address + batch[i - 1].bytes == batch[i].device_address &&
        together + batch[i].bytes <= kTogetherMax;
    together = continues ? together + batch[i].bytes : batch[i].bytes;
    choice.neighbour = continues ? all[i - 1].place : kNowhere;
    const Route route = prepare(batch[i], choice, all[i]);
    if (route != Route::carried) {
      for (const Carriage& one : all.first(i)) give_back(one);
      return route;
    }
    ++choice.load[all[i].place];
  }
  return Route::carried;
}

// `gated`: the lanes whose gate is in the stream.
Code Runtime::put_gates(std::span<const CopyAsked> batch, std::span<Carriage> all, Load& gated) {
  Stream& stream = *all.front().stream;
  const StreamHandle handle = batch.front().stream;
  Code code = follow(handle, stream);
  if (code != kSuccess) return code;
  const std::span<const Copied> before(stream.run);
  std::array<Carriage*, kLanesPerDevice> last{};
  for (size_t i = 0; i < batch.size(); ++i) {
    order(batch[i], before, all[i]);
    Carriage*& previous = last[all[i].place];
    if (previous != nullptr) all[i].request.behind.push_back(previous->request.ticket);
    previous = &all[i];
    all[i].request.after = stream.before;
  }
  for (size_t place = 0; place < kLanesPerDevice && code == kSuccess; ++place) {
    if (last[place] == nullptr) continue;
    code = put_gate(handle, *last[place]);
    if (code == kSuccess) gated[place] = 1;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (gated[all[i].place] != 0) stream.run.push_back(trace_of(batch[i], all[i]));
  }
  stream.touched.store(false, std::memory_order_relaxed);
  return code;
}

}  // namespace sealane::serve
