// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/pace.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <mutex>

namespace sealane::emu {
namespace {

constexpr RealNs kLateMax = 300'000;         // a wake-up; what takes longer is no wake-up
constexpr RealNs kNapInStop = 100'000;       // how often a sleeper looks whether the clock goes on
constexpr RealNs kStopMax = 10'000'000'000;  // see ClockStop

thread_local RealNs late = 0;
std::atomic<RealNs> overrun{0};

// When the clock stood still. Readers never block: they read again if a stop began or ended
// meanwhile (`version` is odd while it is written).
struct Stops {
  std::mutex mutex;  // of writers
  int open = 0;
  std::atomic<uint32_t> version{0};
  std::atomic<RealNs> since{0};  // 0: the clock runs
  std::atomic<RealNs> total{0};  // of stops that ended
};

Stops& stops() {
  static Stops& made = *new Stops;  // used by threads that outlive main()
  return made;
}

RealNs stood(RealNs since, RealNs now) {
  return since == 0 || now < since ? 0 : std::min(now - since, kStopMax);
}

void nap(RealNs duration) {
  const RealNs end = monotonic_ns() + duration;
  timespec until;
  until.tv_sec = static_cast<time_t>(end / 1000000000u);
  until.tv_nsec = static_cast<long>(end % 1000000000u);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

}  // namespace

RealNs monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<RealNs>(now.tv_sec) * 1000000000u + static_cast<RealNs>(now.tv_nsec);
}

RealNs clock_ns() {
  const Stops& s = stops();
  for (;;) {
    const uint32_t version = s.version.load();
    const RealNs since = s.since.load();
    const RealNs total = s.total.load();
    const RealNs now = monotonic_ns();
    if (version % 2 == 0 && s.version.load() == version) return now - total - stood(since, now);
  }
}

ClockStop::ClockStop() {
  if (!config()->paced) return;
  Stops& s = stops();
  const std::lock_guard lock(s.mutex);
  if (s.open++ > 0) return;
  ++s.version;
  s.since.store(monotonic_ns());
  ++s.version;
}

ClockStop::~ClockStop() {
  if (!config()->paced) return;
  Stops& s = stops();
  const std::lock_guard lock(s.mutex);
  if (--s.open > 0) return;
  ++s.version;
  s.total += stood(s.since.load(), monotonic_ns());
  s.since.store(0);
  ++s.version;
}

double device_ns_of(RealNs duration) { return static_cast<double>(duration) / config()->dilation; }

RealNs real_ns_of(double device_ns) {
  return config()->paced ? static_cast<RealNs>(device_ns * config()->dilation) : 0;
}

RealNs thread_ns() { return clock_ns() - late; }

void arrive(RealNs at) {
  const RealNs now = config()->paced ? clock_ns() : at;
  late = now > at && now - at <= kLateMax ? now - at : 0;
}

void go_on_from(RealNs at) {
  if (!config()->paced || at == 0) return;
  const RealNs now = clock_ns();
  late = now > at ? now - at : 0;
}

RealNs overrun_ns() { return overrun.load(); }

void sleep_until(RealNs deadline) {
  if (deadline == 0 || !config()->paced) return;
  if (thread_ns() > deadline) return;
  // The kernel's default slack of 50 us would make every modelled cost that much longer.
  const int slack = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, 1UL);
  for (RealNs now = clock_ns(); now < deadline; now = clock_ns()) {
    const RealNs left = deadline - now;
    nap(stops().since.load() == 0 ? left : std::max(left, kNapInStop));
  }
  if (slack > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
  arrive(deadline);
}

void finish_by(RealNs deadline) {
  if (deadline == 0 || !config()->paced) return;
  const RealNs now = thread_ns();
  if (now > deadline + kLateMax) overrun += now - deadline;
  sleep_until(deadline);
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
