// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Time of the modelled machine. Unpaced, everything runs as fast as it can and device time is real
// time. Paced, whoever stands for modelled work sleeps until its modelled end: a cost of c device
// nanoseconds takes c * K real ones.
//
// Three things keep that honest on a machine that is smaller and noisier than the modelled one:
//   - The host's real work (AEAD through libcrypto, the program) is done inside its modelled
//     window, so K must be large enough for it (config/config.h, automatic_dilation). What does not
//     fit is counted: overrun_ns().
//   - The device's real work (kernels as host functions, moving and verifying bytes) has nothing to
//     do with what it costs there: the clock stands still meanwhile (ClockStop).
//   - A thread wakes up later than it should. Each knows by how much and counts what it does next
//     from when it should have woken (thread_ns), so wake-ups do not add up.
//
// All functions may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "emu/config/config.h"

namespace sealane::emu {

using RealNs = uint64_t;

RealNs monotonic_ns();  // CLOCK_MONOTONIC

// The modelled machine's clock: CLOCK_MONOTONIC less the time it stood still. K of its nanoseconds
// are one of device time.
RealNs clock_ns();

double device_ns_of(RealNs duration);  // clock → device
RealNs real_ns_of(double device_ns);   // device → clock; 0 if unpaced

inline double ns_at(double gb_per_s, uint64_t bytes) {
  return static_cast<double>(bytes) / gb_per_s;
}
inline double ns_from_us(double us) { return us * 1e3; }

// Where the calling thread is on the clock: now, less what its last wake-up was late.
RealNs thread_ns();

// The calling thread waited for something that happened at `at`.
void arrive(RealNs at);

// The same, however long ago: the calling thread goes on with work that was at `at`. Whoever
// charges its own work from end to end, as a Server does, does not pay for what kept its thread
// from it.
void go_on_from(RealNs at);

void sleep_until(RealNs deadline);  // unpaced, or 0: returns at once

// The same at the end of real work of the host; counts by how much it did not fit in its window.
void finish_by(RealNs deadline);
RealNs overrun_ns();  // over all threads

// While one exists the clock stands still; unpaced, it does nothing. A stop that lasts for seconds
// (a kernel that waits for its host) lets the clock go on, so that nobody waits for ever.
class ClockStop {
 public:
  ClockStop();
  ~ClockStop();
  ClockStop(const ClockStop&) = delete;
  ClockStop& operator=(const ClockStop&) = delete;
};

// Something that serves one request at a time: a link, a core, the compute engine. A request that
// arrived at `arrival` ends `cost` device ns after the later of its arrival and the end of the one
// before, however late its thread woke up. Unpaced: does nothing.
class Server {
 public:
  // Reserves the time and returns its end (0 if unpaced).
  RealNs reserve(RealNs arrival, double cost_device_ns);
  // When a request that arrived then would begin.
  RealNs begins(RealNs arrival) const { return std::max(free_at_.load(), arrival); }
  void serve(RealNs arrival, double cost_device_ns) {
    sleep_until(reserve(arrival, cost_device_ns));
  }

 private:
  std::atomic<RealNs> free_at_{0};
};

}  // namespace sealane::emu
