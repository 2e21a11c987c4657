// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a run may take before it counts as livelocked: much longer, in virtual time and in
// events, than the program would take call by call with every fault there is. Derived from the
// program and the platform, so that long programs need no tuning and short ones end soon.
#pragma once

#include <cstdint>
#include <variant>

#include "base/time.h"
#include "platform/cost.h"
#include "sim/sim.h"
#include "workload/operation.h"

namespace sealane::sim {

class Patience {
 public:
  // What one poll of the core may ask for.
  static constexpr uint64_t kActionsMax = 100'000;

  Patience(const workload::Program& program, const Setup& setup) {
    for (const workload::Operation& operation : program) {
      add(kCall + 2 * operation.think, kCallEvents);
      std::visit([&](const auto& action) { allow(action, setup); }, operation.action);
    }
    time_ = scaled(time_, setup.patience);
    events_ = static_cast<uint64_t>(static_cast<double>(events_) * setup.patience);
  }

  // `retries` are calls that were tried again: they take time, and are bounded by it.
  bool ended(Instant now, uint64_t events, uint64_t retries) const {
    return now - Instant{} > time_ || events - retries > events_;
  }
  Duration time() const { return time_; }
  uint64_t events() const { return events_; }

 private:
  static constexpr Duration kCall{5'000'000};  // stalls, rotations and holds included
  static constexpr uint64_t kCallEvents = 256;
  static constexpr uint64_t kMessageEvents = 64;

  static Duration scaled(Duration duration, double by) {
    return Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * by));
  }
  void add(Duration time, uint64_t events) {
    time_ += time;
    events_ += events;
  }

  void allow(const workload::Copy& copy, const Setup& setup) {
    const Platform& platform = setup.platform;
    const Path& path =
        copy.direction == Direction::to_device ? platform.to_device : platform.to_host;
    add(8 * stock_copy_time(platform, path, HostMemory::pageable, copy.host.bytes),
        kMessageEvents * message_count(platform.cc, copy.host.bytes));
  }
  void allow(const workload::Launch& launch, const Setup&) { add(4 * launch.run_time, 0); }
  template <typename Other>
  void allow(const Other&, const Setup&) {}

  Duration time_{1'000'000'000};
  uint64_t events_ = 10'000;
};

}  // namespace sealane::sim
