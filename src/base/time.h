// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Time as a value. The core is handed an Instant with every event and never asks for one; whoever
// drives it owns a Clock: the real one (SteadyClock) or a virtual one (sim).
#pragma once

#include <chrono>

namespace sealane {

using Duration = std::chrono::nanoseconds;

// Names the time line; it has no now() on purpose.
struct Timeline {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<Timeline, Duration>;
  static constexpr bool is_steady = true;
};

using Instant = Timeline::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
};

// CLOCK_MONOTONIC. Safe to use from any thread.
class SteadyClock final : public Clock {
 public:
  Instant now() const override;
};

}  // namespace sealane
