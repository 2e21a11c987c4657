// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/pace.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace sealane::emu {

RealNs real_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<RealNs>(now.tv_sec) * 1000000000u + static_cast<RealNs>(now.tv_nsec);
}

double device_ns_of(RealNs duration) { return static_cast<double>(duration) / config()->dilation; }

RealNs real_ns_of(double device_ns) {
  return config()->paced ? static_cast<RealNs>(device_ns * config()->dilation) : 0;
}

void sleep_until(RealNs deadline) {
  if (deadline == 0 || real_ns() >= deadline) return;
  // The kernel's default slack of 50 us would make every modelled cost that much longer.
  const int slack = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, 1UL);
  timespec until;
  until.tv_sec = static_cast<time_t>(deadline / 1000000000u);
  until.tv_nsec = static_cast<long>(deadline % 1000000000u);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
  if (slack > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
}

RealNs Server::reserve(RealNs arrival, double cost_device_ns) {
  const RealNs cost = real_ns_of(cost_device_ns);
  if (cost == 0) return 0;
  RealNs before = free_at_.load();
  RealNs after = 0;
  do {
    after = std::max(before, arrival) + cost;
  } while (!free_at_.compare_exchange_weak(before, after));
  return after;
}

}  // namespace sealane::emu
