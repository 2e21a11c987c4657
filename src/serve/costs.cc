// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/costs.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "os/pace.h"
#include "os/page_guard.h"
#include "seal/key.h"
#include "seal/split_gcm.h"
#include "seal/stream_copy.h"
#include "serve/source_digest.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kBytes = 1_MiB;
constexpr int kRuns = 5;
// Nobody can measure it before the first copy: that of the fastest GPUs there are, PCIe 5 with 16
// lanes.
constexpr double kLinkGbPerS = 55.4;

struct Measured {
  Costs costs{};
  bool page_guards = false;
};

// Two areas of kBytes. Before each run both leave the caches: what a program copies comes from
// memory, and from cache a copy is several times as fast and a seal hardly. (A walk over more than
// the last cache holds would do the same, and cost every start tens of megabytes.)
struct Areas {
  uint8_t* from;
  uint8_t* to;

  void leave_caches() const { evict({from, 2 * kBytes}); }
};

// Where the calling thread is. A modelled core is where its work is, however late the thread that
// stands for it woke up: on a busy machine that can be later than all the work took.
Instant paced_now() {
  return pace().clock != nullptr ? Instant(Duration(pace().begin())) : SteadyClock().now();
}

// The best of some runs: others may disturb a run, nobody makes one faster. Nor does a modelled
// core make up in one run for what it lost in the one before.
template <typename Run>
double ns_per_byte(const Areas& areas, const Run& run) {
  Duration best = Duration::max();
  for (int i = 0; i < kRuns; ++i) {
    areas.leave_caches();
    pace().go_on_now();
    const Instant begin = paced_now();
    run();
    best = std::min<Duration>(best, paced_now() - begin);
  }
  return static_cast<double>(best.count()) / static_cast<double>(kBytes);
}

void measure_sealing(Costs& costs, const Areas& areas) {
  SystemRandom random;
  const Key key = Key::random(random);
  const auto schedule = SplitGcm::make(key.secret());
  if (schedule == nullptr) return;
  const Iv iv{};  // nothing of it is ever shown to anybody
  costs.seal_ns_per_byte = ns_per_byte(areas, [&] {
    const uint64_t began = pace().begin();
    schedule->seal_part(iv, 0, areas.from, areas.to, kBytes);
    pace().end(Pace::aead_fast, kBytes, began);
  });
  const SourceDigest digest;
  costs.digest_ns_per_byte = ns_per_byte(areas, [&] {
    const uint64_t began = pace().begin();
    static_cast<void>(digest.of(areas.from, kBytes));
    pace().end(Pace::digest, kBytes, began);
  });
}

void measure_guards(Measured& out, const Areas& areas) {
  uint8_t* const memory = areas.from;
  const auto guards = PageGuards::open();
  if (!guards) return;
  const Range range{reinterpret_cast<uint64_t>(memory), kBytes};
  if (!guards->arm(range)) return;
  out.page_guards = true;
  Costs& costs = out.costs;
  costs.guard_ns_per_byte = ns_per_byte(areas, [&] { static_cast<void>(guards->arm(range)); });
  costs.guard_check_ns_per_byte =
      ns_per_byte(areas, [&] { static_cast<void>(guards->written(range)); });
  costs.rewrite_ns_per_byte = ns_per_byte(areas, [&] {
    std::memset(memory, 1, kBytes);
    static_cast<void>(guards->arm(range));
  });
  costs.rewrite_ns_per_byte = std::max(0.0, costs.rewrite_ns_per_byte - costs.guard_ns_per_byte);
  static_cast<void>(guards->disarm(range));
}

Measured measure() {
  Measured out;
  Costs& costs = out.costs;
  const auto slow = [&](Duration& duration) {
    duration = Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * dilation()));
  };
  slow(costs.message);
  slow(costs.pad);
  slow(costs.toll);
  costs.link_ns_per_byte = dilation() / kLinkGbPerS;
  void* memory =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return out;
  const Areas areas{static_cast<uint8_t*>(memory), static_cast<uint8_t*>(memory) + kBytes};
  std::memset(memory, 1, 2 * kBytes);
  costs.copy_ns_per_byte = ns_per_byte(areas, [&] {
    const uint64_t began = pace().begin();
    stream_copy({areas.to, kBytes}, {areas.from, kBytes});
    pace().end(Pace::host_copy, kBytes, began);
  });
  measure_sealing(costs, areas);
  measure_guards(out, areas);
  munmap(memory, 2 * kBytes);
  return out;
}

const Measured& measured() {
  static const Measured once = measure();
  return once;
}

}  // namespace

Costs measure_costs(unsigned threads) {
  Costs costs = measured().costs;
  costs.workers = std::max(1u, threads - 1);
  return costs;
}

bool can_guard_pages() { return measured().page_guards; }

double dilation() { return pace().dilation != nullptr ? std::max(1.0, pace().dilation()) : 1.0; }

}  // namespace sealane::serve
