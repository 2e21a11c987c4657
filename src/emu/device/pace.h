// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Time of the modelled machine. Unpaced, everything runs as fast as it can and device time is real
// time. Paced, whoever stands for modelled work sleeps until its modelled end: a cost of c device
// nanoseconds takes c * K real ones. Real work is done inside that window, which is why K must be
// large enough for this machine (config/config.h, automatic_dilation).
//
// All functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "emu/config/config.h"

namespace sealane::emu {

using RealNs = uint64_t;  // CLOCK_MONOTONIC

RealNs real_ns();
double device_ns_of(RealNs duration);  // real → device
RealNs real_ns_of(double device_ns);   // device → real; 0 if unpaced

inline double ns_at(double gb_per_s, uint64_t bytes) {
  return static_cast<double>(bytes) / gb_per_s;
}
inline double ns_from_us(double us) { return us * 1e3; }

void sleep_until(RealNs deadline);

// Something that serves one request at a time: a link, a core, the compute engine. A request that
// arrived at `arrival` ends `cost` device ns after the later of its arrival and the end of the one
// before, however late its thread woke up. Unpaced: does nothing.
class Server {
 public:
  // Reserves the time and returns its end (real ns; 0 if unpaced).
  RealNs reserve(RealNs arrival, double cost_device_ns);
  void serve(RealNs arrival, double cost_device_ns) {
    sleep_until(reserve(arrival, cost_device_ns));
  }

 private:
  std::atomic<RealNs> free_at_{0};
};

}  // namespace sealane::emu
