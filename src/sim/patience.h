// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a run may take before it counts as livelocked: much longer, in virtual time and in
// events, than the program would take call by call with every fault there is. Grows with
// the program as it is fed in, so that long programs need no tuning and short ones end soon.
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

  explicit Patience(const Setup& setup) : scale_(setup.patience) {}

  void allow(const workload::Operation& operation, const Setup& setup) {
    add(kCall + 2 * operation.think, kCallEvents);
    std::visit([&](const auto& action) { allow_for(action, setup); }, operation.action);
  }

  // `retries` are calls that were tried again: they take time, and are bounded by it.
  bool ended(Instant now, uint64_t events, uint64_t retries) const {
    return now - Instant{} > time() || events - retries > this->events();
  }
  Duration time() const { return scaled(time_, scale_); }
  uint64_t events() const { return static_cast<uint64_t>(static_cast<double>(events_) * scale_); }

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

  void allow_for(const workload::Copy& copy, const Setup& setup) {
    const Platform& platform = setup.platform;
    const Path& path =
        copy.direction == Direction::to_device ? platform.to_device : platform.to_host;
    add(8 * stock_copy_time(platform, path, HostMemory::pageable, copy.host.bytes),
        kMessageEvents * message_count(platform.cc, copy.host.bytes));
  }
  void allow_for(const workload::Launch& launch, const Setup&) { add(4 * launch.run_time, 0); }
  template <typename Other>
  void allow_for(const Other&, const Setup&) {}

  const double scale_;
  Duration time_{1'000'000'000};
  uint64_t events_ = 10'000;
};

}  // namespace sealane::sim
